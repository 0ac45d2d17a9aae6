"""Own samples: the enrolled samples of a version with their subjects, to audit them or to leave each out in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from holue.gallery.subjects import as_subjects
from holue.live.templates import Gathered, as_ids
from holue.live.version import GalleryVersion
from holue.recognition.audit.audit import GalleryAudit, audit_gallery
from holue.recognition.calibration.leave_one_out import LeftOutProbes
from holue.recognition.settings import Settings
from holue.store.protocol import Store


def gathered_samples(store: Store, version: int) -> tuple[Gathered, Any]:
    """All samples of a version, and the id of each one's subject."""
    gathered, names = Gathered.with_names(store.at(version))
    place = np.searchsorted(np.fromiter(names, np.int64, len(names)), gathered.owners)
    return gathered, as_ids(list(names.values()))[place] if names else as_subjects([])


def left_out(store: Store, settings: Settings, now: GalleryVersion) -> LeftOutProbes:
    """The samples of a version as probes, each left out of the gallery that it is searched in."""
    gathered, ids = gathered_samples(store, now.version)
    return LeftOutProbes.of(
        settings.method, gathered.rows, ids, gathered.concentration, gathered.media, settings.weighting,
        now.moment.state.gallery,
    )  # fmt: skip


def audited(store: Store, version: int, options: dict[str, Any]) -> GalleryAudit:
    """The audit of the samples of a version, which are named by their numbers."""
    gathered, ids = gathered_samples(store, version)
    numbers = store.at(version).sample_numbers()
    return audit_gallery(
        gathered.rows, ids, concentration=gathered.concentration, media=gathered.media, sample_id=numbers.astype(str),
        **options,
    )  # fmt: skip
