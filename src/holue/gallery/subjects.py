"""Subject ids: what names an enrolled subject, and UNKNOWN, which names nobody enrolled."""

from __future__ import annotations

import enum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidSubjectsError

Subjects = npt.NDArray[Any]
"""An int64, a ``<U`` or, where UNKNOWN occurs, an object array of ids."""


class Unknown(enum.Enum):
    """The type of :data:`UNKNOWN`: one value that is equal to no id and survives numpy, copies and pickles."""

    UNKNOWN = "unknown"

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __str__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown.UNKNOWN
"""Nobody enrolled: the label of non-mated probes, and the answer for rejected ones."""


def as_subjects(ids: object, n: int | None = None, *, field: str = "y") -> Subjects:
    """Ids as one homogeneous array: all integers (int64) or all strings.

    >>> as_subjects(["ann", "bob"])
    array(['ann', 'bob'], dtype='<U3')
    """
    given = _as_array(ids, field)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim != 1:
        raise InvalidSubjectsError(f"{field} must be one-dimensional, got shape {given.shape}")
    if n is not None and len(given) != n:
        raise InvalidSubjectsError(
            f"{field} must name one subject per embedding: got {len(given)} ids for {n} embeddings "
            "(inconsistent numbers of samples)"
        )
    if given.dtype.kind == "O":
        given = _homogeneous(given, field)
    if given.dtype.kind in "iu":
        if given.size and int(given.max()) > np.iinfo(np.int64).max:
            raise InvalidSubjectsError(f"{field} holds {given.max()}, beyond 64-bit integers; use strings for such ids")
        return given.astype(np.int64)
    if given.dtype.kind == "U":
        blank = np.char.str_len(given) == 0
        if blank.any():
            raise InvalidSubjectsError(f"{field}[{int(blank.argmax())}] is an empty id; give every sample a subject")
        return given
    if len(given) == 0:
        return np.empty(0, dtype=np.int64)
    raise InvalidSubjectsError(
        f"{field} must hold integers or strings, got dtype {given.dtype}; convert it, for instance with "
        ".astype(int) or .astype(str) (unknown label type)"
    )


def as_labels(ids: object, n: int | None = None, *, field: str = "y") -> tuple[Subjects, npt.NDArray[np.bool_]]:
    """Labels of probes: ids and a mask of those that are UNKNOWN (whose id is then meaningless).

    >>> as_labels([7, UNKNOWN])
    (array([7, 7]), array([False,  True]))
    """
    given = _as_array(ids, field)
    if given.dtype.kind != "O" or given.ndim != 1:
        subjects = as_subjects(given, n, field=field)
        return subjects, np.zeros(len(subjects), dtype=bool)
    unknown = np.array([label is UNKNOWN for label in given], dtype=bool)
    filled = given.copy()
    if unknown.all():
        filled = np.zeros(len(given), dtype=np.int64)
    else:
        filled[unknown] = given[~unknown][0]
    return as_subjects(filled, n, field=field), unknown


def _as_array(ids: object, field: str) -> npt.NDArray[Any]:
    # numpy would turn the list ["a", 1] into two strings before anyone could see that the types differ.
    if hasattr(ids, "dtype"):
        return np.asarray(ids)
    try:
        return np.array(list(ids), dtype=object)  # type: ignore[call-overload]
    except TypeError as error:
        raise InvalidSubjectsError(f"{field} must be an array or list of subjects, got {ids!r}") from error


def _homogeneous(given: npt.NDArray[Any], field: str) -> npt.NDArray[Any]:
    for row, label in enumerate(given):
        if label is UNKNOWN:
            raise InvalidSubjectsError(
                f"{field}[{row}] is UNKNOWN; only probes can be unknown, an enrolled subject needs an id"
            )
        if label is None or (isinstance(label, float) and np.isnan(label)):
            raise InvalidSubjectsError(
                f"{field}[{row}] is missing ({label!r}); give every sample a subject, or UNKNOWN where it is a stranger's probe"
            )
    if all(isinstance(label, str) for label in given):
        for row, label in enumerate(given):
            if label.endswith("\0"):  # NumPy's strings would drop it, and the id would be another one
                raise InvalidSubjectsError(
                    f"{field}[{row}] is {label!r}, which ends in a NUL character; remove it from the id"
                )
        return given.astype(np.str_)
    if all(isinstance(label, int | np.integer) and not isinstance(label, bool) for label in given):
        try:
            return given.astype(np.int64)
        except OverflowError as error:
            raise InvalidSubjectsError(f"{field} holds ids beyond 64-bit integers; use strings for such ids") from error
    kinds = sorted({type(label).__name__ for label in given})
    raise InvalidSubjectsError(
        f"{field} must hold only integers or only strings, got {', '.join(kinds)}; convert them to one type "
        "(unknown label type)"
    )
