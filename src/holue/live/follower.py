"""Follower: brings a gallery of templates from one version of the store to the next, pooling only whom a change concerns."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from holue.errors import InvalidParameterError
from holue.gallery.gallery import Gallery
from holue.live.template_cache import SMALLEST, TemplateCache
from holue.live.templates import Gathered, built, changed
from holue.store.protocol import Store
from holue.store.values import NOBODY, Change, Subject, SubjectId

FEW = 64
"""Subjects up to which samples are read subject by subject; beyond, one pass over all of them is faster."""
PATIENCE = 20
"""Times that reading is tried again because another writer was faster."""
LOSERS_UNNAMED = ("split", "undo", "remove_samples")
"""Kinds of change that may take samples from a subject without naming it."""
LARGE_SHARE = 0.25
"""Share of the subjects beyond which building anew is faster than following."""


class Follower:
    """Makes galleries; the caller sees to it that one thread at a time does."""

    def __init__(self, store: Store, weighting: str, cache: TemplateCache) -> None:
        self._store, self._weighting, self._cache = store, weighting, cache
        self._uncached = 0  # subjects that changed since the templates were kept
        self._erasing = threading.Lock()

    def start(self, *, write: bool) -> tuple[int, Gallery | None]:
        """The newest version and its gallery: from the cache and the changes since, or from all samples."""
        cached = self._cache.read(self._weighting)
        if cached is not None and not self._store.damage:
            try:
                concerned = {number for change in self._store.changes(cached.version) for number in _named(change)}
                if len(concerned) <= LARGE_SHARE * len(cached.gallery):
                    return self.follow(cached.version, cached.gallery)
            except InvalidParameterError:  # the versions since are no longer kept
                pass
        version, gallery = self._build()
        if write and gallery is not None and len(gallery) >= SMALLEST:
            self._cache.write(version, self._weighting, gallery)
            self._uncached = 0
        return version, gallery

    def follow(self, version: int, gallery: Gallery | None) -> tuple[int, Gallery | None]:
        """The newest version and its gallery, from an earlier version and its gallery."""
        try:
            for _ in range(PATIENCE):
                changes = self._store.changes(version)
                if not changes:
                    return version, gallery
                if len(changes) > 1 and any(change.kind == "erase" for change in changes):
                    break  # an erasure takes what it concerns out of the changes before it
                if self._store.damage:
                    break  # samples cannot be read one by one
                newest = changes[-1].version
                concerned = concerned_by(self._store, version, changes)
                if len(concerned) > FEW:
                    gathered, coming = Gathered.with_names(self._store.at(newest), concerned)
                    return newest, self._change(gallery, concerned, coming, gathered)
                enrolled = list(self._enrolled(concerned))
                gathered = Gathered.from_store(self._store, enrolled)
                if self._store.version == newest:  # or what was read may be of a later version
                    coming = {subject.number: subject.id for subject in enrolled}
                    return newest, self._change(gallery, concerned, coming, gathered)
        except InvalidParameterError:  # the versions since are no longer kept
            pass
        return self._build()

    def keep_templates(self, version: int, gallery: Gallery | None, *, always: bool = False) -> None:
        """Keep the templates of a version for the next opening, where enough has changed since they were kept last.

        They are not pooled again, unless the store has gone on: an erasure may not be in ``gallery`` yet.
        """
        with self._erasing:
            n_subjects = 0 if gallery is None else len(gallery)
            if n_subjects < SMALLEST or not (always or self._uncached > n_subjects / 100):
                return
            if self._store.damage or self._store.version != version:
                version, gallery = self._build()
            if gallery is not None:
                self._cache.write(version, self._weighting, gallery)
                self._uncached = 0

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """While an erasure goes on no templates are kept: the store deletes them, and they are made again later."""
        with self._erasing:
            yield
            self._uncached = self._store.status().subjects

    def _build(self) -> tuple[int, Gallery | None]:
        view = self._store.at()
        gallery = built(view, self._weighting)
        self._uncached = 0 if gallery is None else len(gallery)
        return view.version, gallery

    def _enrolled(self, numbers: Iterable[int]) -> Iterator[Subject]:
        for number in sorted(numbers):
            for subject in self._store.subjects(after=number - 1, limit=1):
                if subject.number == number:
                    yield subject

    def _change(
        self, gallery: Gallery | None, concerned: set[int], coming: dict[int, SubjectId], gathered: Gathered
    ) -> Gallery | None:
        self._uncached += len(concerned)
        return changed(gallery, concerned, coming, gathered, self._weighting)


def concerned_by(store: Store, version: int, changes: list[Change]) -> set[int]:
    """Everybody whose template, id or presence may have changed after a version: whoever got or lost a sample too."""
    concerned = {number for change in changes for number in _named(change)}
    moved = [change.samples for change in changes if change.kind in LOSERS_UNNAMED]
    if moved:
        view = store.at(version)
        samples = np.unique(np.concatenate(moved))
        concerned |= set(view.owners(samples[samples < view.next_sample]).tolist()) - {NOBODY}
    return concerned


def _named(change: Change) -> set[int]:
    return {*change.subjects.tolist(), *change.moved_to.tolist()} - {NOBODY}
