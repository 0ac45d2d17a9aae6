"""Edit: one change of who is enrolled, worked out before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from holue.errors import InvalidParameterError
from holue.store.batch import Batch
from holue.store.values import Int64Array, Subject


@dataclass(frozen=True, eq=False)
class Edit:
    """What changes: a home applies it whole.

    A subject in ``subjects`` takes this state, new or again; one in ``leaving`` goes. A sample in ``moves`` belongs to
    the number beside it from now on, or to nobody (None). ``batch`` are new samples, which belong to ``owners``.
    """

    kind: str
    subjects: list[Subject] = field(default_factory=list)
    new_subjects: list[Subject] = field(default_factory=list)
    leaving: list[int] = field(default_factory=list)
    moves: Sequence[tuple[int, int | None]] = field(default_factory=list)
    batch: Batch | None = None
    owners: Int64Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    by: str | None = None
    undoes: int | None = None


@dataclass(frozen=True, eq=False)
class Touched:
    """What a past change touched: the states before it, and the last version that touched the same and still stands."""

    subjects: list[tuple[int, Subject | None]]  # number, and its state before (None: it was not enrolled)
    samples: list[tuple[int, int | None]]  # number, and whose it was before
    last_touched: (
        int  # the greatest version that changed any of them and was not undone; not more than the change's own if none
    )
    undone_by: int | None = None  # the version that undid the change, and was not undone itself


def undone_since(version: int, later: Iterable[tuple[int, int | None]]) -> tuple[set[int], int | None]:
    """Of the changes after a version (each with the one it undoes): those that have no effect, and which one undid the version.

    A change that was undone and the undo of it have no effect together, unless the undo was undone in turn.

    >>> undone_since(2, [(3, None), (4, 3)])
    ({3, 4}, None)
    >>> undone_since(2, [(3, None), (4, 3), (5, 4), (6, 2)])
    ({4, 5}, 6)
    """
    without_effect: set[int] = set()
    undone_by = None
    for change, undoes in sorted(later, reverse=True):
        if undoes is None or change in without_effect:
            continue
        if undoes == version:
            undone_by = change
        elif undoes > version:
            without_effect |= {change, undoes}
    return without_effect, undone_by


def undo_edit(version: int, touched: Touched, by: str | None) -> Edit:
    """The edit that puts everything a change touched back to what it was before."""
    if touched.undone_by is not None:
        raise InvalidParameterError(
            f"version {version} was undone by version {touched.undone_by}; undo that to have the change again"
        )
    if touched.last_touched > version:
        raise InvalidParameterError(
            f"version {version} cannot be undone: version {touched.last_touched} changed the same subjects; undo that first"
        )
    if not touched.subjects and not touched.samples:
        raise InvalidParameterError(f"version {version} cannot be undone: nothing it changed is left; it was erased")
    return Edit(
        "undo",
        subjects=[before for _, before in touched.subjects if before is not None],
        leaving=[number for number, before in touched.subjects if before is None],
        moves=list(touched.samples),
        by=by,
        undoes=version,
    )


def renamed(subject: Subject, new_id: str | int) -> Subject:
    """The subject under another id."""
    return replace(subject, id=new_id)
