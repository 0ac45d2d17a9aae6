"""Quality scores, by name: how far an answer can be trusted.

To add one: write a file with a class like its neighbours (see ``score.py``), and add its line to ``SCORES``.
"""

from __future__ import annotations

from holue.recognition.quality.acceptance import AcceptanceQuality
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.quality.convolved import ConvolvedQuality
from holue.recognition.quality.entropy import EntropyQuality
from holue.recognition.quality.f1_gain import F1GainQuality
from holue.recognition.quality.gallery import GalleryQuality
from holue.recognition.quality.holistic import HolisticMLPQuality
from holue.recognition.quality.holistic_sum import HolisticSumQuality
from holue.recognition.quality.monte_carlo import MonteCarloQuality
from holue.recognition.quality.sample import SampleQuality
from holue.recognition.quality.score import QualityScore

SCORES: dict[str, type[QualityScore]] = {
    "acceptance": AcceptanceQuality,
    "galue": GalleryQuality,
    "galue-entropy": EntropyQuality,
    "quality": SampleQuality,
    "holue-sum": HolisticSumQuality,
    "holue": HolisticMLPQuality,
    "holue-mc": MonteCarloQuality,
    "holue-closed": ConvolvedQuality,
    "holue-plus": CalibratedQuality,
    "holue-f1": F1GainQuality,
}

__all__ = ["SCORES", "QualityScore"]
