"""Examination: what a recogniser made of some probes at one moment, before it is put into answers."""

from __future__ import annotations

from dataclasses import dataclass

from holue.gallery.embeddings import Float64Array
from holue.recognition.calibration.fingerprint import Fingerprints
from holue.recognition.quality import QualityScore
from holue.recognition.reading import Reading
from holue.recognition.state.lineage import Lineage


@dataclass(frozen=True, eq=False)
class Examination:
    """A reading, the quality score that rates it, and what of the calibration a risk controller needs."""

    reading: Reading
    score: QualityScore
    quality_levels: Float64Array | None  # thresholds worth trying; None where nothing was calibrated
    calibration_fingerprints: Fingerprints | None
    lineage: Lineage
