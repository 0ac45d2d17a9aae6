"""Calibration error: how far P(correct) is from the share of correct decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.columns import FloatArray, flags, numbers, same_length


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """Bins of P(correct) beside what came true in them; empty bins are left out.

    ``edges``: (lower, upper] of each bin, shape (b, 2). ``predicted``: mean P(correct). ``observed``:
    share that is correct. ``count``: probes in the bin.
    """

    edges: FloatArray
    predicted: FloatArray
    observed: FloatArray
    count: NDArray[np.int64]

    @property
    def expected_error(self) -> float:
        """ECE: the mean of |observed − predicted|, weighted by count."""
        return float(np.average(np.abs(self.observed - self.predicted), weights=self.count))

    @property
    def largest_error(self) -> float:
        """The largest |observed − predicted| of any bin."""
        return float(np.max(np.abs(self.observed - self.predicted)))

    def pooled(self, fewest: int) -> ReliabilityDiagram:
        """The same with neighbouring bins pooled until each holds at least ``fewest`` probes, if there are so many.

        >>> diagram = reliability_diagram([0.1, 0.3, 0.6, 0.9], correct=[0, 1, 0, 1], bins=4).pooled(2)
        >>> diagram.edges.tolist(), diagram.count.tolist(), diagram.observed.tolist()
        ([[0.0, 0.5], [0.5, 1.0]], [2, 2], [0.5, 0.5])
        """
        starts, held = [0], 0
        for bin_, count in enumerate(self.count.tolist()):
            if held >= fewest:
                starts, held = [*starts, bin_], 0
            held += count
        if held < fewest and len(starts) > 1:
            starts.pop()
        ends = np.array([*starts[1:], len(self.count)]) - 1
        total = np.add.reduceat(self.count, starts)
        predicted = np.add.reduceat(self.predicted * self.count, starts) / total
        observed = np.add.reduceat(self.observed * self.count, starts) / total
        edges = np.column_stack([self.edges[starts, 0], self.edges[ends, 1]])
        return ReliabilityDiagram(edges, predicted, observed, total)

    def intervals(self, level: float = 0.95) -> FloatArray:
        """Wilson intervals (b, 2) of the observed shares, as if probes were independent.

        >>> reliability_diagram([0.8] * 10, correct=[1] * 8 + [0] * 2).intervals().round(2).tolist()
        [[0.49, 0.94]]
        """
        z2 = float(ndtri((1 + level) / 2)) ** 2
        middle = (self.observed + z2 / (2 * self.count)) / (1 + z2 / self.count)
        spread = self.observed * (1 - self.observed) / self.count + z2 / (4 * self.count**2)
        half = np.sqrt(z2 * spread) / (1 + z2 / self.count)
        return np.clip(np.column_stack([middle - half, middle + half]), 0.0, 1.0)


def reliability_diagram(
    probability: ArrayLike, *, correct: ArrayLike, bins: int = 15, strategy: str = "uniform"
) -> ReliabilityDiagram:
    """Bin P(correct) and compare it with what came true.

    ``strategy`` in scikit-learn's words: "uniform" for bins of equal width, "quantile" for bins of equal
    mass, where equal probabilities always share a bin (so there may be fewer bins). A bin holds (lower,
    upper]; the first also its lower edge.

    >>> diagram = reliability_diagram([0.1, 0.2, 0.9, 0.8], correct=[0, 0, 1, 0], bins=2)
    >>> diagram.predicted, diagram.observed, diagram.count
    (array([0.15, 0.85]), array([0. , 0.5]), array([2, 2]))
    """
    p, is_correct = _check(probability, correct)
    if isinstance(bins, bool) or bins != int(bins) or bins < 1:
        raise InvalidParameterError(f"bins must be a whole number of at least 1; got {bins!r}")
    edges = _edges(p, int(bins), strategy)
    place = np.searchsorted(edges[1:-1], p, side="left")
    count = np.bincount(place, minlength=len(edges) - 1)
    filled = count > 0
    predicted = np.bincount(place, weights=p, minlength=len(count))[filled] / count[filled]
    observed = np.bincount(place, weights=is_correct, minlength=len(count))[filled] / count[filled]
    return ReliabilityDiagram(
        np.column_stack([edges[:-1], edges[1:]])[filled], predicted, observed, count[filled].astype(np.int64)
    )


def expected_calibration_error(
    probability: ArrayLike, *, correct: ArrayLike, bins: int = 15, strategy: str = "uniform"
) -> float:
    """Expected calibration error: ``ECE = Σ_b (n_b/n) |share correct in b − mean P(correct) in b|``.

    Bins as in ``reliability_diagram`` (Guo et al., 2017: 15 of equal width).

    >>> round(expected_calibration_error([0.1, 0.2, 0.9, 0.8], correct=[0, 0, 1, 0], bins=2), 12)
    0.25
    """
    return reliability_diagram(probability, correct=correct, bins=bins, strategy=strategy).expected_error


def squared_calibration_error(
    probability: ArrayLike, *, correct: ArrayLike, person: ArrayLike | None = None, bins: int = 15
) -> float:
    """The mean squared calibration error without the part that chance adds: ``Σ_b (n_b/n) (d_b² − v_b)``.

    ``d_b`` is observed − predicted in a bin of equal mass and ``v_b`` the estimated variance of ``d_b``. Chance makes ``d_b²``
    larger by ``v_b`` on average, so the plain error of few answers is never 0. This one is 0 on average where probabilities are
    right (Kumar, Liang and Ma, 2019), and may be negative. Its root is a root mean square, which is at least the mean error.

    ``person`` names who stands behind each answer. Answers of one person are not independent: ``v_b`` is then that of a sum over
    people. Without it every answer counts as a person.

    >>> p = np.tile([0.25, 0.75], 500)
    >>> right = np.random.default_rng(0).random(1000) < p
    >>> abs(squared_calibration_error(p, correct=right)) < 0.001 < squared_calibration_error(p / 2, correct=right)
    True
    """
    p, is_correct = _check(probability, correct)
    behind = np.arange(len(p)) if person is None else np.unique(np.asarray(person), return_inverse=True)[1]
    if len(behind) != len(p):
        raise InvalidInputError(f"person must name one person for each of {len(p)} answers; got {len(behind)}")
    place = np.searchsorted(_edges(p, bins, "quantile")[1:-1], p, side="left")
    total = 0.0
    for bin_ in np.unique(place):
        inside = place == bin_
        off = is_correct[inside] - p[inside]
        by_person = np.bincount(behind[inside], off - off.mean())
        people = len(np.unique(behind[inside]))
        variance = (by_person**2).sum() / len(off) ** 2 * people / max(people - 1, 1)
        total += len(off) * (off.mean() ** 2 - variance)
    return float(total / len(p))


def brier_score(probability: ArrayLike, *, correct: ArrayLike) -> float:
    """Brier score: the mean of ``(P(correct) − correct)²``.

    >>> brier_score([1.0, 0.5], correct=[1, 0])
    0.125
    """
    p, is_correct = _check(probability, correct)
    return float(np.mean((p - is_correct) ** 2))


def log_loss(probability: ArrayLike, *, correct: ArrayLike) -> float:
    """Log loss: the mean of ``−ln P(what came true)``; certainty that was wrong counts as 36.04 = −ln 2⁻⁵².

    >>> round(log_loss([0.5, 0.5], correct=[1, 0]), 6)
    0.693147
    """
    p, is_correct = _check(probability, correct)
    came_true = np.where(is_correct, p, 1 - p)
    return float(-np.mean(np.log(np.maximum(came_true, np.finfo(np.float64).eps))))


def _edges(p: FloatArray, bins: int, strategy: str) -> FloatArray:
    shares = np.linspace(0, 1, bins + 1)
    if strategy == "uniform":
        return shares
    if strategy == "quantile":
        # Repeated quantiles are one edge: otherwise ties would make empty bins.
        edges = np.unique(np.quantile(p, shares))
        return edges if len(edges) > 1 else np.repeat(edges, 2)
    raise InvalidParameterError(f"strategy must be 'uniform' or 'quantile'; got {strategy!r}")


def _check(probability: ArrayLike, correct: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    p = numbers("probability", probability).astype(np.float64)
    is_correct = flags("correct", correct)
    same_length(probability=p, correct=is_correct)
    outside = (p < 0) | (p > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidInputError(f"probability must lie in [0, 1]; row {row} is {p[row]}")
    return p, is_correct
