"""Batch: rows given for enrolment, checked row by row before anything is kept."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from holue.errors import InvalidEmbeddingsError, InvalidInputError, InvalidParameterError, InvalidSubjectsError
from holue.store.values import BadRow, Float32Array, Float64Array, Int64Array, SubjectId


class SampleFields(TypedDict, total=False):
    """What can be said about the samples of a batch: one value for all, or one per row."""

    medium: str | Sequence[str]  # the photograph or recording a sample comes from
    concentration: object
    time: object  # seconds since 1970; now where it is not given
    origin: str | Sequence[str | None] | None
    by: str | None  # who enrols them
    model: str | None  # the fingerprint of the model that made them, compared with the store's
    skip_bad: bool  # enrol the good rows and list the others


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows that passed the checks, with their place in what was given, and the rows that did not pass."""

    rows: Float32Array  # (n, d)
    ids: list[SubjectId]
    concentration: Float64Array  # (n,) NaN where none was given
    time: Float64Array  # (n,)
    medium: list[str]
    origin: list[str | None]
    enrolled_by: str | None
    given: Int64Array  # (n,) the row in what was given
    bad: tuple[BadRow, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def without(self, why: Callable[[SubjectId], str | None], *, skip_bad: bool) -> Batch:
        """The batch without the rows whose id is refused; the first refusal is an error unless bad rows are skipped."""
        refused = {subject: reason for subject in dict.fromkeys(self.ids) if (reason := why(subject)) is not None}
        if not refused:
            return self
        bad = [(int(row), refused[subject]) for row, subject in zip(self.given, self.ids) if subject in refused]
        if not skip_bad:
            raise InvalidSubjectsError(_first(bad))
        keep = np.array([subject not in refused for subject in self.ids])
        return self._take(keep, tuple(BadRow(*entry) for entry in bad))

    def _take(self, keep: np.ndarray, bad: tuple[BadRow, ...]) -> Batch:
        chosen = np.flatnonzero(keep).tolist()
        return Batch(
            self.rows[keep],
            [self.ids[i] for i in chosen],
            self.concentration[keep],
            self.time[keep],
            [self.medium[i] for i in chosen],
            [self.origin[i] for i in chosen],
            self.enrolled_by,
            self.given[keep],
            tuple(sorted((*self.bad, *bad), key=lambda entry: entry.row)),
        )


def check_batch(
    X: object,
    ids: Iterable[SubjectId],
    *,
    dim: int,
    medium: str | Sequence[str] = "",
    concentration: object = None,
    time: object = None,
    origin: str | Sequence[str | None] | None = None,
    enrolled_by: str | None = None,
    skip_bad: bool = False,
) -> Batch:
    """Rows as float32 with what belongs to each; an error that names the first bad row, or the rest where bad ones are skipped.

    >>> batch = check_batch([[1, 0], [0, 0]], ["ann", "bob"], dim=2, skip_bad=True)
    >>> batch.ids, batch.bad[0].row
    (['ann'], 1)
    """
    names = [_plain(subject) for subject in (ids.tolist() if isinstance(ids, np.ndarray) else ids)]
    rows, bad = _as_rows(X, dim)
    n = len(rows)
    if len(names) != n:
        raise InvalidSubjectsError(f"ids must name one subject per row of X: got {len(names)} ids for {n} rows")
    kappa = _numbers(concentration, n, "concentration", np.nan)
    times = _numbers(time, n, "time", clock.time())
    bad |= {i: why for i, why in _bad_rows(rows).items() if i not in bad}
    if concentration is not None:
        for i in np.flatnonzero(~(np.isfinite(kappa) & (kappa > 0))).tolist():
            bad.setdefault(i, f"concentration must be positive and finite, got {kappa[i]}")
    if time is not None:
        for i in np.flatnonzero(~np.isfinite(times)).tolist():
            bad.setdefault(i, f"time must be finite seconds since 1970, got {times[i]}")
    for i, why in _bad_ids(names):
        bad.setdefault(i, why)
    if bad and not skip_bad:
        raise _kind_of(bad)(_first(sorted(bad.items())))
    media = _texts(medium, n, "medium")
    origins = [None] * n if origin is None else _texts(origin, n, "origin")
    batch = Batch(rows, names, kappa, times, media, origins, enrolled_by, np.arange(n), ())  # type: ignore[arg-type]
    if not bad:
        return batch
    keep = np.ones(n, dtype=bool)
    keep[list(bad)] = False
    return batch._take(keep, tuple(BadRow(i, bad[i]) for i in sorted(bad)))


def check_model(given: str | None, kept: str | None) -> None:
    """Refuse embeddings of another model than a gallery was made for; None says nothing.

    >>> check_model("my-model-1", "my-model-1")
    """
    if given is not None and given != kept:
        raise InvalidEmbeddingsError(
            f"the embeddings come from model {given!r}, but this gallery was created for {kept!r}; embed again with that "
            "model, or create another gallery"
        )


def _plain(subject: object) -> SubjectId:
    return subject.item() if isinstance(subject, np.generic) else subject  # type: ignore[return-value]


def _as_rows(X: object, dim: int) -> tuple[Float32Array, dict[int, str]]:
    """Float32 rows; rows of another length are bad, unless all are: then the whole batch comes from another model."""
    bad: dict[int, str] = {}
    try:
        given = np.asarray(X)
    except ValueError:  # rows of different lengths
        given = np.empty(0, dtype=object)
    if given.dtype == object:
        given, bad = _ragged(X, dim)
    if given.dtype.kind not in "fiu":
        raise InvalidEmbeddingsError(f"X must hold real numbers, got dtype {given.dtype}")
    if given.ndim != 2 or given.shape[1] != dim:
        raise InvalidEmbeddingsError(
            f"X has shape {given.shape}, but this store keeps rows of {dim} numbers (n, {dim}); "
            "embed with the model that the store was created for"
        )
    if given.dtype == np.float32:
        return np.ascontiguousarray(given), bad
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(given, dtype=np.float32), bad


def _ragged(X: object, dim: int) -> tuple[np.ndarray, dict[int, str]]:
    bad: dict[int, str] = {}
    rows = list(X)  # type: ignore[call-overload]
    given = np.ones((len(rows), dim), dtype=np.float32)
    for i, row in enumerate(rows):
        try:
            values = np.asarray(row, dtype=np.float32)
        except (ValueError, TypeError):
            bad[i] = "is not a row of real numbers"
            continue
        if values.shape == (dim,):
            given[i] = values
        else:
            bad[i] = f"has shape {values.shape}, but this store keeps rows of {dim} numbers"
    return given, bad


def _bad_rows(rows: Float32Array) -> dict[int, str]:
    bad: dict[int, str] = {}
    # NaN and infinity survive the product with zero, so one pass without a temporary finds whether there are any.
    with np.errstate(invalid="ignore", over="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
    if len(squares) and squares.min() > 0 and squares.max() < np.inf:  # NaN is neither
        return bad
    for i in np.flatnonzero(~(np.isfinite(squares) & (squares > 0))).tolist():
        if not np.isfinite(rows[i]).all():
            bad[i] = "holds NaN or infinity as float32; embed the sample again"
        elif not rows[i].any():
            bad[i] = "is zero and has no direction; embed the sample again"
    return bad


def _bad_ids(names: list[SubjectId]) -> Iterable[tuple[int, str]]:
    kinds = set(map(type, names))
    if kinds <= {str} and "" not in names and _storable("".join(names)):  # type: ignore[arg-type]
        return
    if kinds == {int} and max(map(abs, names)) < 2**63:  # type: ignore[arg-type]
        return
    first = type(names[0])
    for i, name in enumerate(names):
        if not isinstance(name, str | int) or isinstance(name, bool):
            yield i, f"has the id {name!r}; an id is a string or an integer"
        elif isinstance(name, int) and abs(name) >= 2**63:
            yield i, "has an id beyond 64-bit integers; use a string"
        elif isinstance(name, str) and not _storable(name):
            yield i, f"has the id {name!r}; an id is valid Unicode without the character NUL"
        elif name == "":
            yield i, "has an empty id; give every sample a subject"
        elif type(name) is not first:
            yield i, f"has the id {name!r}, but row 0 has {names[0]!r}; ids are all strings or all integers"


def _storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _numbers(given: object, n: int, field: str, missing: float) -> Float64Array:
    if given is None:
        return np.full(n, missing)
    try:
        return np.array(np.broadcast_to(np.asarray(given, dtype=np.float64), (n,)))
    except (ValueError, TypeError) as error:
        raise InvalidParameterError(f"{field} must be one number, or one per row ({n}): {error}") from error


def _texts(given: str | Sequence[str | None], n: int, field: str) -> list[str | None]:
    texts: list[str | None] = [given] * n if isinstance(given, str) else list(given)
    if len(texts) != n:
        raise InvalidParameterError(f"{field} must be one text, or one per row: got {len(texts)} for {n} rows")
    return texts


def _kind_of(bad: dict[int, str]) -> type[InvalidInputError]:
    first = bad[min(bad)]
    if first.startswith(("has the id", "has an ", "names ")):
        return InvalidSubjectsError
    return InvalidParameterError if first.startswith(("concentration", "time")) else InvalidEmbeddingsError


def _first(bad: list[tuple[int, str]]) -> str:
    more = f" ({len(bad) - 1} more rows are bad)" if len(bad) > 1 else ""
    row, why = bad[0]
    return f"row {row} {why}{more}; nothing of the batch was enrolled; skip_bad=True enrols the rest"
