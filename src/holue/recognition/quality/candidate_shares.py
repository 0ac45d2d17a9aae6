"""CandidateShares: how the probability that somebody enrolled is shown is shared among the enrolled subjects.

    P(c | enrolled) = e^{t s_c} / Σ_j e^{t s_j}

with the cosines ``s_c`` and a sharpness ``t > 0``, learned from mated validation probes by maximum likelihood. There is no
intercept: two subjects with equal scores are equally probable, whatever the validation probes were, and the odds between the
best and the second, ``e^{t (s₁ − s₂)}``, rise with the gap.

The same gap says less in a poor sample. Where concentrations are there, a second sharpness follows them as a power, which does
not fall: ``ln t = a + b ln κ_x, b ≥ 0``, level beyond the validation probes. (Of a vMF sample around its subject's direction
``t = κ_x`` exactly.) Without it probes of one and of ten samples would share a sharpness that is too high for the one and too low
for the ten.

The scan keeps the best scores and, of all others, ``Σ_j e^{a s_j}`` and its mean score at ``a = κ/T``. With their number these
give the first two cumulants of the other scores, and from them their sum at ``t``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize, minimize_scalar

from holue.gallery.embeddings import Float64Array
from holue.recognition.reading import KEPT, TEMPERED, Reading

SOFTEST, SHARPEST = 1.0, 1000.0
"""Bounds of ``t``; it was 20 to 40 on faces, voices and characters."""

MEASURABLE = 1e-4
"""Share of a sum below which a remainder of it is rounding: scores are float32, and ``a`` is some tens."""


SLOPE_DEVIATION = 1.0
"""Standard deviation of the normal prior of b, which keeps few mistaken probes from deciding it."""


@dataclass(frozen=True)
class SampleSharpness:
    """``t`` at the poorest and at the best concentration of the validation probes; between them a power.

    >>> sharpness = SampleSharpness((1.0, 100.0), (10.0, 40.0))
    >>> sharpness(np.array([0.1, 1.0, 10.0, 1000.0])).round(3).tolist()
    [10.0, 10.0, 20.0, 40.0]
    """

    concentration: tuple[float, float]  # ascending
    sharpness: tuple[float, float]  # not falling

    def __call__(self, concentration: Float64Array) -> Float64Array:
        """``t`` (n,) of concentrations (n,)."""
        return np.asarray(np.exp(np.interp(np.log(concentration), np.log(self.concentration), np.log(self.sharpness))))


@dataclass(frozen=True)
class CandidateShares:
    """The learned sharpness, and how it follows the sample where concentrations were there."""

    sharpness: float
    of_sample: SampleSharpness | None = None

    @classmethod
    def fit(cls, reading: Reading, truth: npt.NDArray[np.int64]) -> CandidateShares:
        """Learn ``t`` from the mated probes of a reading (``truth`` is their gallery row, −1 for strangers).

        One imagined probe with the median gap, whose second candidate is right, keeps ``t`` finite where no best one is wrong.
        """
        mated = np.flatnonzero(truth >= 0)
        reading, truth = reading.take(mated), truth[mated]
        scores = np.asarray(reading.evidence.top_scores[:, :KEPT], dtype=np.float64)
        is_true = reading.evidence.top_index[:, :KEPT] == truth[:, None]
        among_top = is_true.any(axis=1)
        gap = float(np.median(scores[:, 0] - scores[:, 1]))

        def loss(log_sharpness: Float64Array | float, typical: float) -> float:
            """Of ``ln t`` of every probe, and of the imagined one."""
            top, others = _shares(reading, np.exp(log_sharpness))
            likelihood = np.where(among_top, (top * is_true).sum(axis=1), others)
            imagined = np.logaddexp(0.0, np.exp(typical) * gap)
            return float(imagined - np.log(np.maximum(likelihood, np.finfo(np.float64).tiny)).sum())

        bounds = float(np.log(SOFTEST)), float(np.log(SHARPEST))
        found = minimize_scalar(lambda t: loss(t, t), bounds=bounds, method="bounded")
        kappa = reading.probes.concentrations
        if kappa is None or kappa.min() == kappa.max():
            return cls(float(np.exp(found.x)))
        log_kappa = np.log(np.asarray(kappa, dtype=np.float64))
        # Around the mean, where the level and the slope say different things.
        place = log_kappa - log_kappa.mean()

        def loss_of_power(parameters: Float64Array) -> float:
            level, slope = parameters
            return loss(np.clip(level + slope * place, *bounds), level) + 0.5 * float(slope / SLOPE_DEVIATION) ** 2

        line = minimize(loss_of_power, [found.x, 0.1], method="L-BFGS-B", bounds=[bounds, (0.0, None)]).x
        (low, high), ends = np.exp([log_kappa.min(), log_kappa.max()]), np.array([place.min(), place.max()])
        softest, sharpest = np.exp(np.clip(line[0] + line[1] * ends, *bounds))
        of_sample = SampleSharpness((float(low), float(high)), (float(softest), float(sharpest)))
        return cls(float(np.exp(found.x)), of_sample)

    def __call__(self, reading: Reading) -> Float64Array:
        """P(c | enrolled) of the candidates of a reading (n, k), best first; all K candidates sum to 1."""
        sharpness = self._sharpness(reading)
        top, others = _shares(reading, sharpness)
        scores = np.asarray(reading.evidence.top_scores, dtype=np.float64)
        kept = top.shape[1]
        if scores.shape[1] == kept:
            return top
        further, others = np.exp(_column(sharpness) * (scores[:, kept:] - scores[:, :1])), others / top[:, 0]
        if scores.shape[1] == len(reading.search):
            further = _with_sum(further, others, top[:, -1] / top[:, 0])
        else:
            # The sum of the others is an estimate, and those that are shown must not exceed it.
            further *= np.minimum(others / np.maximum(further.sum(axis=1), np.finfo(np.float64).tiny), 1.0)[:, None]
        return np.concatenate([top, further * top[:, :1]], axis=1)

    def state(self) -> dict[str, Float64Array]:
        """The learned numbers."""
        numbers = {"sharpness": np.array([self.sharpness])}
        if self.of_sample is not None:
            numbers["sharpness_of_sample"] = np.array([self.of_sample.concentration, self.of_sample.sharpness])
        return numbers

    @classmethod
    def restored(cls, state: Mapping[str, Float64Array]) -> CandidateShares:
        """What :meth:`state` gave; earlier saves have one sharpness for all samples."""
        sharpness, of_sample = state["sharpness"], state.get("sharpness_of_sample")
        if sharpness.shape != (1,) or not (np.isfinite(sharpness) & (sharpness > 0)).all():
            raise ValueError(f"sharpness must be one positive number, got {sharpness}")
        if of_sample is None:
            return cls(float(sharpness[0]))
        if of_sample.shape != (2, 2) or not (np.isfinite(of_sample) & (of_sample > 0)).all():
            raise ValueError(f"sharpness_of_sample must be two pairs of positive numbers, got {of_sample}")
        (low, high), (softest, sharpest) = of_sample.tolist()
        if low >= high or softest > sharpest:
            raise ValueError(f"sharpness_of_sample must rise, got {of_sample}")
        return cls(float(sharpness[0]), SampleSharpness((low, high), (softest, sharpest)))

    def _sharpness(self, reading: Reading) -> Float64Array | float:
        kappa = reading.probes.concentrations
        if kappa is None or self.of_sample is None:
            return self.sharpness
        return self.of_sample(np.asarray(kappa, dtype=np.float64))


def _shares(reading: Reading, sharpness: Float64Array | float) -> tuple[Float64Array, Float64Array]:
    """The shares of the best ``KEPT`` candidates (n, KEPT), and of all others together (n,)."""
    scores = np.asarray(reading.evidence.top_scores[:, :KEPT], dtype=np.float64)
    top = np.exp(_column(sharpness) * (scores - scores[:, :1]))
    others = _others(reading, scores, sharpness)
    total = top.sum(axis=1) + others
    return top / total[:, None], others / total


def _column(sharpness: Float64Array | float) -> Float64Array:
    """``t`` of every probe beside the scores (n, k)."""
    return np.reshape(sharpness, (-1, 1))


def _with_sum(values: Float64Array, wanted: Float64Array, highest: Float64Array) -> Float64Array:
    """Values (n, k) in the same order that sum to ``wanted`` (n,) and stay at or below ``highest`` (n,).

    >>> _with_sum(np.array([[4.0, 2.0]]), np.array([9.0]), np.array([6.0])).tolist()
    [[5.0, 4.0]]
    """
    total, capacity = values.sum(axis=1), values.shape[1] * highest
    shrink = wanted / np.maximum(total, np.finfo(np.float64).tiny)
    lift = np.clip((wanted - total) / np.maximum(capacity - total, np.finfo(np.float64).tiny), 0.0, 1.0)
    lifted = values + lift[:, None] * (highest[:, None] - values)
    return np.asarray(np.where((wanted < total)[:, None], values * shrink[:, None], lifted))


def _others(reading: Reading, top: Float64Array, sharpness: Float64Array | float) -> Float64Array:
    """``Σ e^{t (s_j − s₁)}`` over the subjects that are not among the top (n, k)."""
    n_others = len(reading.search) - top.shape[1]
    if n_others <= 0:
        return np.zeros(len(top))
    a, evidence = float(reading.evidence.sharpness[TEMPERED]), reading.evidence
    best = top[:, 0]
    all_at_a = np.exp(evidence.log_mass[:, TEMPERED] - a * best)
    top_at_a = np.exp(a * (top - best[:, None]))
    others_at_a = all_at_a - top_at_a.sum(axis=1)
    measurable = others_at_a > MEASURABLE * all_at_a
    others_at_a = np.where(measurable, others_at_a, 1.0)
    finite = np.where(np.isfinite(top), top, 0.0)
    mean = (all_at_a * evidence.mean_score[:, TEMPERED] - (top_at_a * finite).sum(axis=1)) / others_at_a
    # ln(Σ/n) = μ a + c a² and its slope μ + 2 c a are known at a; c, half a variance, is not negative.
    log_mean, slope = np.log(others_at_a / n_others), mean - best
    c = np.maximum((slope * a - log_mean) / a**2, 0.0)
    estimate = (log_mean / a - c * a) * sharpness + c * sharpness**2
    # None of them scores higher than the last of the top.
    highest = sharpness * (np.where(np.isfinite(top[:, -1]), top[:, -1], best) - best)
    return np.asarray(n_others * np.exp(np.where(measurable, np.minimum(estimate, highest), highest)))
