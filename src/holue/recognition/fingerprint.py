"""Fingerprints of probes: a short digest each, so that probes that were learned from are known when they come again."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError
from holue.gallery.embeddings import Embeddings

if TYPE_CHECKING:
    from holue.recognition.recognizer import OpenSetRecognizer

Fingerprints = npt.NDArray[np.uint64]


def fingerprints(probes: Embeddings) -> Fingerprints:
    """The distinct digests of the probes' directions, sorted. Equal vectors of equal precision have equal ones."""
    rows = np.ascontiguousarray(probes.directions, dtype=np.float32)
    digests = b"".join(blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    return np.unique(np.frombuffer(digests, dtype="<u8")).astype(np.uint64)


def refuse_reused(probes: Embeddings, recognizer: OpenSetRecognizer) -> None:
    """Refuse development probes that calibrated the recogniser: a guarantee must come from probes it has not learned from."""
    learned: Fingerprints | None = getattr(recognizer, "calibration_fingerprints_", None)
    if learned is None:
        return
    reused = int(np.isin(fingerprints(probes), learned).sum())
    if reused:
        raise CalibrationDataError(
            f"{reused} of the {len(probes)} development probes calibrated this recogniser, which fits them better than it "
            "will fit others: split the development subjects in two, calibrate on one half and control the risk on the other"
        )
