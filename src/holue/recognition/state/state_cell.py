"""StateCell: a recogniser's current state and what of its gallery is prepared; the only thing in a recogniser that changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any
from weakref import WeakSet

from holue.errors import NotFittedYetError
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Part, Segment
from holue.recognition.search.prepared_segments import PreparedSegments
from holue.recognition.search.search import Search, SearchKind
from holue.recognition.search.search_report import SearchReport
from holue.recognition.state.lineage import Lineage
from holue.recognition.state.state import State


class StateCell:
    """The current state. Reading it never waits; a change replaces it whole, and none is lost.

    A copy (``copy``, ``pickle``) has the same state and a lock of its own.
    """

    def __init__(self) -> None:
        self._state: State | None = None
        self._segments = PreparedSegments()
        self._warned: tuple[Lineage, set[str]] | None = None
        self._lock = Lock()
        _cells.add(self)

    @property
    def state(self) -> State:
        """The state now, or an error where nothing is enrolled yet."""
        if self._state is None:
            raise NotFittedYetError("this OpenSetRecognizer has no gallery yet: call fit(X, y) first")
        return self._state

    @property
    def is_fitted(self) -> bool:
        """Whether there is a state."""
        return self._state is not None

    def begin(self, state: State) -> None:
        """Put a state in place that no earlier one matters to."""
        with self._lock:  # or a change under way could put its own in place of this one
            self._state = state

    def change(self, step: Callable[[State], State]) -> None:
        """Put ``step(state)`` in place of the state; taken again where another thread was faster, so that nothing is lost."""
        while True:
            now = self.state
            later = step(now)  # whatever can fail fails here, and changes nothing
            with self._lock:
                if self._state is now:
                    self._state = later
                    return

    def warned(self, state: State) -> set[str]:
        """What users were warned of since the calibration of this state; add to it."""
        with self._lock:
            if self._warned is None or self._warned[0].calibration is not state.lineage.calibration:
                self._warned = state.lineage, set()
            return self._warned[1]

    def search(self, kind: SearchKind, gallery: Gallery, threshold: float | None = None) -> Search:
        """How a version of the gallery is read: by what is prepared of its segments, exactly where nothing is."""
        return self._segments.search(kind, gallery, self._merge, threshold)

    def search_report(self, kind: SearchKind, state: State) -> SearchReport:
        """How the gallery of a state is read, as far as it is known without preparing anything."""
        point = state.operating_point
        return self._segments.report(kind, state.gallery, None if point is None else point.threshold)

    def wait_for_preparation(self) -> None:
        """Until nothing is being prepared or merged in the background; for measurements and tests."""
        self._segments.wait()

    def _merge(self, old: Sequence[Part], segment: Segment) -> bool:
        self.change(lambda state: replace(state, gallery=state.gallery.merged(old, segment)))
        return any(part.segment is segment for part in self.state.gallery.parts)

    def forget_threads(self) -> None:
        """Begin with locks that nobody holds: in a forked child no other thread goes on."""
        self._lock = Lock()
        self._segments.forget_threads()

    def __getstate__(self) -> dict[str, Any]:
        return {"_state": self._state, "_warned": self._warned, "prepared": self._segments.last}

    def __setstate__(self, known: dict[str, Any]) -> None:
        self._segments = PreparedSegments()
        self._segments.restore(known.pop("prepared"))
        self.__dict__.update(known)
        self._lock = Lock()
        _cells.add(self)


_cells: WeakSet[StateCell] = WeakSet()


def _after_fork() -> None:
    # Another thread of the parent may have held a lock, or been preparing a segment: neither goes on in the child.
    for cell in list(_cells):
        cell.forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
