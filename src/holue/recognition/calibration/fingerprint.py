"""Fingerprints of probes: a short digest each, so that probes that were learned from are known when they come again."""

from __future__ import annotations

import warnings
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError
from holue.gallery.embeddings import Embeddings

Fingerprints = npt.NDArray[np.uint64]

CHANCE = 0.01
"""The share of probes that may be copies by chance: public collections hold the same picture twice now and then."""


class ReusedProbesWarning(UserWarning):
    """A few development probes are copies of calibration probes and were left out."""


def fingerprints(probes: Embeddings) -> Fingerprints:
    """A digest of each probe's direction (n,). Equal vectors of equal precision have equal ones."""
    rows = np.ascontiguousarray(probes.directions, dtype=np.float32)
    digests = b"".join(blake2b(row.tobytes(), digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def fresh_rows(probes: Embeddings, learned: Fingerprints | None) -> npt.NDArray[np.int64]:
    """The development probes that are not among those learned from: only from these may a guarantee come.

    A few copies are left out with a warning; more than 1 in 100 are a mistake, and refused.
    """
    if learned is None:
        return np.arange(len(probes))
    reused = np.isin(fingerprints(probes), learned)
    count = int(reused.sum())
    if count > CHANCE * len(probes):
        raise CalibrationDataError(
            f"{count} of the {len(probes)} development probes calibrated this recogniser, which fits them better than it "
            "will fit others: split the development subjects in two, calibrate on one half and control the risk on the other"
        )
    if count:
        warnings.warn(
            f"{count} of the {len(probes)} development probes are copies of calibration probes and were left out",
            ReusedProbesWarning,
            stacklevel=4,
        )
    return np.flatnonzero(~reused)
