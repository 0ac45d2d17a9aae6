"""StateCell: holds a recogniser's current state and the search prepared for it; the only thing in a recogniser that changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from weakref import WeakSet

from holue.errors import NotFittedYetError
from holue.gallery.gallery import Gallery
from holue.recognition.lineage import Lineage
from holue.recognition.search import Search, SearchKind
from holue.recognition.state import State


@dataclass(frozen=True, eq=False)
class _Preparation:
    """A search that one thread prepares, and others may wait for."""

    kind: SearchKind
    gallery: Gallery
    search: Future[Search] = field(default_factory=Future)


class StateCell:
    """The current state. Reading it never waits; a change replaces it whole, and none is lost.

    A copy (``copy``, ``pickle``) has the same state and a lock of its own.
    """

    def __init__(self) -> None:
        self._state: State | None = None
        self._prepared: Search | None = None  # the last one that was prepared
        self._warned: tuple[Lineage, set[str]] | None = None
        self._preparation: _Preparation | None = None
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

    def search(self, kind: SearchKind, gallery: Gallery) -> Search:
        """The search of the enrolled gallery, prepared once per version by one thread while others wait for it.

        A gallery that is not, or no longer, the enrolled one is read exactly.
        """
        while kind != "exact" and self._is_enrolled(gallery):
            known = self._prepared
            if known is not None and known.gallery is gallery and known.kind == kind:
                return known
            with self._lock:
                under_way = self._preparation
                if under_way is None:
                    self._preparation = mine = _Preparation(kind, gallery)
            if under_way is None:
                return self._prepare(mine)
            # One preparation at a time, of this version or of another: an index takes all processors, and much memory.
            wait([under_way.search])
            if under_way.gallery is gallery and under_way.kind == kind and not under_way.search.cancelled():
                return under_way.search.result()
        return Search.exact(gallery)

    def _prepare(self, preparation: _Preparation) -> Search:
        try:
            search = Search.prepare(preparation.kind, preparation.gallery, self._prepared)
        except Exception as error:
            self._end(None)
            preparation.search.set_exception(error)
            raise
        except BaseException:  # this thread was interrupted; one of those that wait takes over
            self._end(None)
            preparation.search.cancel()
            raise
        self._end(search)
        preparation.search.set_result(search)
        return search

    def _end(self, search: Search | None) -> None:
        with self._lock:
            self._prepared = search or self._prepared
            self._preparation = None

    def _is_enrolled(self, gallery: Gallery) -> bool:
        return self._state is not None and self._state.gallery is gallery

    def _forget_threads(self) -> None:
        self._lock, self._preparation = Lock(), None

    def __getstate__(self) -> dict[str, Any]:
        return {"_state": self._state, "_prepared": self._prepared, "_warned": self._warned}

    def __setstate__(self, known: dict[str, Any]) -> None:
        self.__dict__.update(known)
        self._forget_threads()
        _cells.add(self)


_cells: WeakSet[StateCell] = WeakSet()


def _after_fork() -> None:
    # Another thread of the parent may have held a lock, or been preparing a search: neither goes on in the child.
    for cell in list(_cells):
        cell._forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
