"""Truth: which probes show whom, and which answers were right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.gallery.gallery import Gallery
from holue.gallery.subjects import as_labels
from holue.recognition.reading import Reading


def truth_rows(gallery: Gallery, y: object, n: int) -> npt.NDArray[np.int64]:
    """Gallery row of each probe's true subject, −1 for strangers (UNKNOWN, or anyone not in this gallery)."""
    subjects, unknown = as_labels(y, n)
    if unknown.all():
        return np.full(n, -1, dtype=np.int64)
    return np.where(unknown, -1, gallery.index_of(subjects))


def correct_answers(reading: Reading, truth: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Mated probes accepted as the right subject, and strangers rejected."""
    named = reading.accepted & (reading.evidence.top_index[:, 0] == truth)
    return np.where(truth >= 0, named, ~reading.accepted)
