"""ProbabilityModel: the probability of every candidate and of "nobody enrolled", calibrated on validation probes.

    P(nobody) = 1 − h(m, g, k)
    P(c)      = h(m, g, k) · e^{t s_c} / Σ_j e^{t s_j}

``h``, the probability that somebody enrolled is shown, is a monotone function of the three causes of doubt (``causes.py``),
learned from mated and non-mated validation probes. It follows the gallery's size (``heads/shifted.py``). The second factor shares
it among the subjects (``candidate_shares.py``). All of it sums to 1, and the probability that a decision is right is the
probability of what was decided.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, NotCalibratedError
from holue.gallery.embeddings import Float64Array
from holue.recognition.answer.causes import causes, shifted_causes
from holue.recognition.answer.probabilities import Probabilities
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality.candidate_shares import CandidateShares
from holue.recognition.quality.heads.monotone import quantile_knots
from holue.recognition.quality.heads.shifted import ShiftedHead
from holue.recognition.quality.score import QualityScore
from holue.recognition.reading import Reading

FEWEST = 20
"""Mated, or non-mated, validation probes below which probabilities would be guesswork."""

SIZES = (0.25, 1.0, 4.0, 16.0, 64.0)
"""Sizes of gallery, as multiples of the validation gallery's, at which ``h`` is fitted; between them it is interpolated."""

Knots = list[npt.NDArray[np.float64]]


class ProbabilityModel:
    """What validation probes teach about the probabilities of an answer: ``fit``, then call with a reading."""

    shares: CandidateShares | None = None

    def __init__(self) -> None:
        self.heads: dict[int, ShiftedHead] = {}  # by the number of causes: without κ_x two, with it three

    def fit(self, reading: Reading, truth: npt.NDArray[np.int64]) -> None:
        """Learn from the gallery row of every validation probe, −1 for strangers.

        Where concentrations are there, a second ``h`` is learned without them, for probes that come without.
        """
        mated = truth >= 0
        for kind, count in (("mated", int(mated.sum())), ("non-mated", int((~mated).sum()))):
            if count < FEWEST:
                raise CalibrationDataError(
                    f"only {count} {kind} validation probes, at least {FEWEST} are needed to learn probabilities; bring more"
                )
        here, shifts = reading.point.stranger_shift, _shifts(reading.point)
        features = {
            shift: _from_followed(shifted_causes(reading, truth, shift - here), reading.point)
            for shift in {here, *shifts}
        }
        self.shares = CandidateShares.fit(reading, truth)
        for width in range(2, features[here].shape[1] + 1):
            knots = cause_knots(features[here][:, :width])
            self.heads[width] = ShiftedHead()
            self.heads[width].fit(lambda shift, width=width: features[shift][:, :width], mated, shifts, knots)  # type: ignore[misc]

    @property
    def width(self) -> int:
        """How many causes it was fitted with: three with concentrations, two without, none before fitting."""
        return max(self.heads, default=0)

    def __call__(self, reading: Reading) -> Probabilities:
        """The probabilities of a reading's answers; concentrations that calibration did not have are not read."""
        if self.shares is None:
            raise NotCalibratedError("probabilities are learned from validation probes: call calibrate first")
        enrolled = self.p_enrolled(causes(reading), reading.point)
        return Probabilities(enrolled[:, None] * self.shares(reading), 1.0 - enrolled, True, enrolled)

    def p_enrolled(self, features: Float64Array, point: OperatingPoint) -> Float64Array:
        """``h`` (n,) of causes (n, 2 or 3) at an operating point."""
        width = min(features.shape[1], self.width)
        return self.heads[width](_from_followed(features[:, :width], point), point.stranger_shift)

    def state(self) -> dict[str, Float64Array]:
        """The fitted numbers."""
        if self.shares is None:
            return {}
        heads = [head.state(f"enrolled_{width}") for width, head in self.heads.items()]
        return {**self.shares.state(), **{k: v for head in heads for k, v in head.items()}}

    def restore(self, state: Mapping[str, Float64Array]) -> None:
        """Take back what :meth:`state` gave."""
        if "sharpness" not in state:
            return
        self.shares = CandidateShares.restored(state)
        for width in (2, 3):
            head = ShiftedHead()
            head.restore(state, f"enrolled_{width}")
            if head.is_fitted:
                if (columns := len(head.heads[0].knots)) != width:
                    raise ValueError(f"enrolled_{width} must read {width} causes, and has knots of {columns}")
                self.heads[width] = head
        if 2 not in self.heads:
            raise ValueError("the head of probes without concentrations is missing")


def _shifts(point: OperatingPoint) -> list[float]:
    """The shifts of strangers' scores at which ``h`` is fitted, ascending; where nothing says how they move, the one here."""
    if point.tail is None or point.target_fpir is None:
        return [point.stranger_shift]
    sizes = sorted({max(round(size * point.n_subjects), 2) for size in SIZES})
    return sorted({point.for_gallery(size, "fpir").stranger_shift for size in sizes})


def _from_followed(features: Float64Array, point: OperatingPoint) -> Float64Array:
    """Causes whose margin is from the threshold that keeps FPIR, where ``hold`` keeps something else."""
    if point.calibrated is None or point.tail is None:
        return features
    moved = features.copy()
    moved[:, 0] += point.threshold - (point.calibrated.threshold + point.stranger_shift)
    return moved


def cause_knots(features: Float64Array) -> Knots:
    """Where ``h`` may bend: at quantiles, for the boundary those of accepted and of rejected probes, and at the threshold."""
    boundary = features[:, 0]
    sides = [quantile_knots(boundary[side]) for side in (boundary >= 0, boundary < 0) if side.any()]
    return [np.unique(np.concatenate([*sides, [0.0]])), *(quantile_knots(column) for column in features[:, 1:].T)]


def learned_probabilities(
    score: QualityScore, reading: Reading, truth: npt.NDArray[np.int64]
) -> ProbabilityModel | None:
    """The model for the answers of a fitted score; None where the score has its own, or validation probes are too few."""
    if score.has_probabilities or min((truth >= 0).sum(), (truth < 0).sum()) < FEWEST:
        return None
    model = ProbabilityModel()
    model.fit(reading, truth)
    return model
