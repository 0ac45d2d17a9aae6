"""Renewal: a new gallery of the same subjects whose samples are turned by another secret rotation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from typing import Any, cast

import numpy as np

from holue.live.calibration.calibrations import Calibrations
from holue.live.kept_settings import NAME
from holue.live.live_gallery import LiveGallery
from holue.live.opening import created_store
from holue.live.protection import ProtectedStore, key_in, protect
from holue.store.protocol import Store
from holue.store.values import Sample, Subject

NEW_KEY = "HOLUE_NEW_TEMPLATE_KEY"
SUBJECTS_PER_PAGE = 1000


def renew(gallery: LiveGallery, path: str | os.PathLike[str], *, by: str | None = None) -> None:
    """Make a new gallery at ``path`` under the key in ``HOLUE_NEW_TEMPLATE_KEY``; the old one stays as it is.

    It has the same subjects with all that is said about them, their samples, the settings and the calibration that answers, so it
    gives the same answers, up to rounding. Subjects and samples get new numbers, and the history stays behind. Delete the old
    gallery, its snapshots and its backups afterwards: whoever has both keys' galleries needs one key only.
    """
    key, now = key_in(NEW_KEY), gallery.current
    target = created_store(os.fspath(path), dim=gallery.dim, model=gallery.model)
    try:
        store = cast(Store, ProtectedStore(target, protect(target, key)))
        for page in _pages(gallery):
            _copy(gallery, store, page, by)
        if now.calibrated is not None and now.state is not None:
            version, source = store.version, now.calibrated.entry.source
            Calibrations(store).keep(now.state, gallery.settings, made_at=version, since=version, source=source, by=by)
        settings = gallery.store.artifact(NAME)
        if settings is not None:  # last: a gallery without settings is not finished
            store.put_artifact(NAME, settings, by=by)
    finally:
        target.close()


def _pages(gallery: LiveGallery) -> Iterator[list[Subject]]:
    last = 0
    while page := gallery.subjects(last, SUBJECTS_PER_PAGE):
        yield page
        last = page[-1].number


def _copy(gallery: LiveGallery, store: Store, page: list[Subject], by: str | None) -> None:
    """Enrol some subjects; samples with a concentration and without go one after the other, since a batch has either."""
    known = {subject.number: subject for subject in page}
    samples = [sample for subject in page for sample in gallery.samples(subject.id)]
    done: set[int] = set()
    for _, some in groupby(sorted(samples, key=_bare), key=_bare):
        batch = list(some)
        for new in (True, False):
            part = [sample for sample in batch if (sample.subject not in done) == new]
            if part:
                owners = {sample.subject: known[sample.subject] for sample in part}
                said = _said(list(owners.values())) if new else {}
                verb = store.enroll if new else store.add_samples
                rows, ids = np.stack([one.embedding for one in part]), [owners[one.subject].id for one in part]
                verb(rows, ids, by=by, **_columns(part), **said)
        done |= {sample.subject for sample in batch}


def _bare(sample: Sample) -> bool:
    return sample.concentration is None


def _columns(samples: list[Sample]) -> dict[str, Any]:
    bare = _bare(samples[0])
    return {
        "medium": [sample.medium for sample in samples],
        "concentration": None if bare else np.array([sample.concentration for sample in samples]),
        "time": np.array([sample.time for sample in samples]),
        "origin": [sample.origin for sample in samples],
    }


def _said(subjects: list[Subject]) -> dict[str, Any]:
    return {
        "metadata": {one.id: one.metadata for one in subjects if one.metadata},
        "retain_until": {one.id: one.retain_until for one in subjects if one.retain_until is not None},
        "consent": {one.id: one.consent for one in subjects if one.consent is not None},
        "purpose": {one.id: one.purpose for one in subjects if one.purpose is not None},
    }
