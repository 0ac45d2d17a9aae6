"""CalibratedQuality: P(correct) from the three causes of doubt, monotone in each (HolUE-plus)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidConcentrationError
from holue.gallery.embeddings import Float64Array
from holue.recognition.causes import causes
from holue.recognition.quality.heads.monotone import MonotoneHead
from holue.recognition.quality.score import QualityScore, State
from holue.recognition.reading import Reading
from holue.recognition.reasons import explain

FEWEST = 20
"""Accepted, or rejected, validation probes below which a head of its own would be guesswork."""

BRANCHES = ("rejected", "accepted")


class CalibratedQuality(QualityScore):
    """``q = P(correct | m, g, k, decision)``: one monotone head for accepted probes and one for rejected ones.

    Calibrated without concentrations it reads the first two causes only.
    """

    name = "HolUE-plus"
    needs_fit = True
    is_probability = True

    def __init__(self) -> None:
        self.heads = {branch: MonotoneHead() for branch in BRANCHES}
        self.typical: Float64Array = np.empty((2, 0))  # causes of a typical right answer, rejected and accepted

    def fit(self, reading: Reading, correct: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
        """Fit both heads on validation probes."""
        features = causes(reading)
        typical = []
        for accepted, branch in enumerate(BRANCHES):
            rows = reading.accepted == bool(accepted)
            if (rows & correct).sum() < FEWEST:
                raise CalibrationDataError(
                    f"only {int((rows & correct).sum())} validation probes were rightly {branch}, at least {FEWEST} are "
                    "needed to learn how far such answers can be trusted; bring more, or use method='galue'"
                )
            self.heads[branch].fit(features[rows], correct[rows])
            typical.append(np.median(features[rows & correct], axis=0))
        self.typical = np.array(typical)

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return self.judge(causes(reading), reading.accepted)

    def judge(self, features: Float64Array, accepted: npt.NDArray[np.bool_]) -> Float64Array:
        """P(correct) (n,) for causes (n, 3 or 2) and decisions."""
        expected = self.typical.shape[1]
        if expected and features.shape[1] != expected:
            raise InvalidConcentrationError(
                f"calibrated {'with' if expected == 3 else 'without'} concentrations, asked "
                f"{'without' if expected == 3 else 'with'} them; give them to both or to neither"
            )
        quality = np.empty(len(features))
        for was_accepted, branch in enumerate(BRANCHES):
            rows = accepted == bool(was_accepted)
            quality[rows] = self.heads[branch](features[rows])
        return quality

    def reasons(self, reading: Reading) -> Sequence[str]:
        """The cause with the largest share in the uncertainty, as a sentence."""
        return explain(reading, self.judge, self.typical).sentences

    def state(self) -> State:
        """The fitted numbers."""
        heads = {k: v for branch, head in self.heads.items() for k, v in head.state(branch).items()}
        return {**heads, "typical": self.typical}

    def restore(self, state: State) -> None:
        """Take back what :meth:`state` gave."""
        for branch, head in self.heads.items():
            head.restore(state, branch)
        typical = state["typical"]
        features = {len(head.knots) for head in self.heads.values() if head.knots is not None}
        if features != {typical.shape[1]} or len(typical) != len(BRANCHES) or not np.isfinite(typical).all():
            raise ValueError(f"typical must hold finite causes of both branches, got shape {typical.shape}")
        self.typical = typical
