"""Truth: which probes show whom, and which answers were right."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.gallery.gallery import Gallery
from holue.gallery.subjects import as_labels, as_subjects
from holue.recognition.reading import Reading
from holue.recognition.search.search import Search


def truth_numbers(gallery: Gallery | Search, y: object, n: int) -> npt.NDArray[np.int64]:
    """Number of each probe's true subject, −1 for strangers (UNKNOWN, or anyone not in this gallery)."""
    subjects, unknown = as_labels(y, n)
    if unknown.all():
        return np.full(n, -1, dtype=np.int64)
    return np.where(unknown, -1, gallery.index_of(subjects))


def correct_answers(reading: Reading, truth: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Mated probes accepted as the right subject, and strangers rejected."""
    named = reading.accepted & (reading.evidence.top_index[:, 0] == truth)
    return np.where(truth >= 0, named, ~reading.accepted)


def people(y: object, subject: object, n: int) -> tuple[npt.NDArray[np.int64], bool]:
    """A number for the person behind each probe, and whether everybody was named.

    ``subject`` names everybody; without it ``y`` does, and each UNKNOWN counts as a person of their own.

    >>> people([7, 7, 9], None, 3)
    (array([0, 0, 1]), True)
    """
    if subject is not None:
        return np.unique(as_subjects(subject, n, field="subject"), return_inverse=True)[1].astype(np.int64), True
    labels, unknown = as_labels(y, n)
    number = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    number[unknown] = number.max() + 1 + np.arange(int(unknown.sum()))
    return number, not unknown.any()
