"""CalibratedQuality: the calibrated probability that the decision is right (HolUE-plus)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidConcentrationError, NotCalibratedError
from holue.gallery.embeddings import Float64Array
from holue.recognition.answer.probabilities import Probabilities
from holue.recognition.answer.reasons import SAMPLE, Reasons, Typical, explain
from holue.recognition.calibration.truth import correct_answers
from holue.recognition.quality.probability_model import FEWEST, ProbabilityModel
from holue.recognition.quality.score import QualityScore, Rating, State
from holue.recognition.reading import Reading

BRANCHES = ("rejected", "accepted")


class CalibratedQuality(QualityScore):
    """``q = P(what was decided)`` of the calibrated distribution over candidates and nobody (see ``probability_model.py``).

    Calibrated without concentrations it reads the scores only.
    """

    name = "HolUE-plus"
    needs_fit = True
    is_probability = True
    has_probabilities = True
    typical: Typical | None = None

    def __init__(self) -> None:
        self.model = ProbabilityModel()

    def fit(self, reading: Reading, truth: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Fit the distribution on validation probes."""
        correct = correct_answers(reading, truth)
        for accepted, branch in enumerate(BRANCHES):
            right = int((correct & (reading.accepted == bool(accepted))).sum())
            if right < FEWEST:
                raise CalibrationDataError(
                    f"only {right} validation probes were rightly {branch}, at least {FEWEST} are "
                    "needed to learn how far such answers can be trusted; bring more, or use method='galue'"
                )
        self.model.fit(reading, truth)
        self.typical = Typical.of(reading, self.model(reading), correct, truth >= 0)

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return self.probabilities(reading).of_decision(reading.accepted)

    def probabilities(self, reading: Reading) -> Probabilities:
        """The calibrated distribution of every answer."""
        expected, given = self.model.width, 2 if reading.probes.concentrations is None else 3
        if expected and given != expected:
            raise InvalidConcentrationError(
                f"calibrated {'with' if expected == 3 else 'without'} concentrations, asked "
                f"{'without' if expected == 3 else 'with'} them; give them to both or to neither"
            )
        return self.model(reading)

    def rate(self, reading: Reading) -> Rating:
        """Quality, uncertainty, reasons and the distribution behind them, computed once."""
        probabilities = self.probabilities(reading)
        quality = probabilities.of_decision(reading.accepted)
        reasons = self.explain(reading, probabilities).sentences
        return Rating(quality, self.uncertainty(reading, quality), reasons, probabilities)

    def explain(self, reading: Reading, probabilities: Probabilities | None = None) -> Reasons:
        """Why each answer is uncertain; ``probabilities`` are those of the reading, where they are there already."""
        if self.typical is None:
            raise NotCalibratedError("reasons compare with typical validation answers: call calibrate first")
        probabilities = probabilities or self.probabilities(reading)

        def judge(features: Float64Array) -> Float64Array:
            return self.model.p_enrolled(features, reading.point)

        return explain(reading, probabilities, judge, self.typical)

    def state(self) -> State:
        """The fitted numbers."""
        if self.typical is None:
            return {}
        typical = {"typical_causes": self.typical.causes, "typical_share": self.typical.share}
        return {**self.model.state(), **typical, "poor_sample": np.array([self.typical.poor])}

    def restore(self, state: State) -> None:
        """Take back what :meth:`state` gave."""
        self.model.restore(state)
        if "typical_causes" in state:
            # Earlier saves do not say what a poor sample is: then it is one poorer than is typical of recognised subjects.
            usual = state["typical_causes"][-1:, SAMPLE:].ravel() if state["typical_causes"].ndim == 2 else np.zeros(0)
            poor = state.get("poor_sample", usual if len(usual) else np.array([np.inf]))
            if poor.shape != (1,) or np.isnan(poor).any():
                raise ValueError(f"poor_sample must be one number, got {poor}")
            self.typical = Typical(state["typical_causes"], state["typical_share"], float(poor[0]))
            shapes = self.typical.causes.shape, self.typical.share.shape
            if shapes != ((2, self.model.width), (2,)):
                raise ValueError(f"typical answers must be those of both decisions, got shapes {shapes}")
            if not (np.isfinite(self.typical.causes).all() and np.isfinite(self.typical.share).all()):
                raise ValueError("typical answers must be finite")
        elif self.model.width:
            raise ValueError("typical answers are missing")
        elif "typical" in state:
            raise ValueError("HolUE-plus was learned by an earlier version of holue: calibrate again and save")
