"""Drift: has the world moved away from what a recogniser was calibrated on, judged probe by probe.

A conformal test martingale (Vovk, Gammerman and Shafer 2022, chapter 8). The n-th value gets the p-value of its rank among the
reference and all values before it, ties broken at random; as long as the values are exchangeable with the reference the
p-values are independent and uniform. A capital bets on them with the functions, each of mean 1,

    1 + e (2p − 1),  e = ±1, ±½        values fell or rose
    1 + e (2|2p − 1| − 1),  e = ±1     values spread or drew together

and a share JUMP of it moves between them and an idle purse at every step (the "simple jumper"), so that a drift that starts
late is found as well. The capital has mean 1, so by Ville's inequality it *ever* reaches 1/α with probability at most α: the
false-alarm rate of the whole run, however long.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidInputError, NotCalibratedError
from holue.gallery.embeddings import Float64Array
from holue.recognition.checks import check_share
from holue.recognition.risk.conformal import ConformalScores

LEVEL_BETS: Float64Array = np.array([0.0, -1.0, -0.5, 0.5, 1.0, 0.0, 0.0])
SPREAD_BETS: Float64Array = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 1.0])
JUMP = 0.01
SMALLEST_REFERENCE = 50


@dataclass
class DriftMonitor:
    """A running test that values keep coming from where the reference came from.

    Feed it one statistic of probes that are like those of the reference: the sample concentration of all probes, or the best
    score or ``log p_unknown`` of probes known to be strangers. It changes with every update.

    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(rng.normal(size=1000), false_alarm_rate=0.01, rng=rng)
    >>> monitor.update(rng.normal(size=300)).alarm, monitor.update(rng.normal(size=300) - 1).alarm
    (False, True)
    """

    reference: npt.ArrayLike
    false_alarm_rate: float = 0.01
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        check_share("false_alarm_rate", self.false_alarm_rate)
        self._seen: list[float] = np.sort(_values(self.reference, "reference")).tolist()
        if len(self._seen) < SMALLEST_REFERENCE:
            raise CalibrationDataError(
                f"drift is judged against at least {SMALLEST_REFERENCE} reference values, got {len(self._seen)}; bring more "
                "validation probes"
            )
        self._log_capital = 0.0
        self._purses = np.full(len(LEVEL_BETS), 1.0 / len(LEVEL_BETS))
        self._n = 0
        self._alarm_at: int | None = None

    def update(self, values: npt.ArrayLike) -> DriftState:
        """Take in further values, in the order they came."""
        for value in _values(values, "values").tolist():
            self._bet(self._p_value(value))
            insort(self._seen, value)
        return self.state

    @property
    def state(self) -> DriftState:
        """Where the test stands."""
        return DriftState(self._n, float(np.exp(min(self._log_capital, 700.0))), self._alarm_at, self.false_alarm_rate)

    def _p_value(self, value: float) -> float:
        below, up_to = bisect_left(self._seen, value), bisect_right(self._seen, value)
        # The value itself counts among its ties, and its place among them is drawn.
        return (below + float(self.rng.random()) * (up_to - below + 1)) / (len(self._seen) + 1)

    def _bet(self, p: float) -> None:
        level = 2 * p - 1
        spread = 2 * abs(level) - 1
        purses = (1 - JUMP) * self._purses + JUMP / len(self._purses)
        purses = purses * (1 + LEVEL_BETS * level + SPREAD_BETS * spread)
        total = float(purses.sum())
        # Kept relative to the total, so that a long drift does not overflow.
        self._purses = purses / total
        self._log_capital += float(np.log(total))
        self._n += 1
        if self._alarm_at is None and self._log_capital >= -np.log(self.false_alarm_rate):
            self._alarm_at = self._n


@dataclass(frozen=True)
class DriftState:
    """How much evidence against "nothing has changed" there is after n values."""

    n: int
    capital: float  # mean 1 while nothing changes
    alarm_at: int | None  # the value at which the capital first reached 1/α
    false_alarm_rate: float

    @property
    def alarm(self) -> bool:
        """Whether the capital ever reached 1/α; it stays once it did."""
        return self.alarm_at is not None

    def __str__(self) -> str:
        if self.alarm_at is None:
            return f"no drift seen in {self.n} probes"
        return (
            f"drift: probe {self.alarm_at} of {self.n} settled it (without drift an alarm in the whole run has probability at "
            f"most {self.false_alarm_rate:g}); calibrate anew on recent probes"
        )


class KnowsStrangers(Protocol):
    """A recogniser, as far as its validation strangers go."""

    @property
    def conformal_scores_(self) -> ConformalScores:
        """How probable the truth was on validation probes; absent before a calibration."""
        ...


def stranger_monitor(
    recognizer: KnowsStrangers, *, false_alarm_rate: float = 0.01, rng: np.random.Generator | None = None
) -> DriftMonitor:
    """A monitor of ``log p_unknown`` of probes known to be strangers, against those the recogniser was calibrated on.

    Feed it ``np.log(identify(X).p_unknown)``. It holds while the gallery is the one that was calibrated, or of its size.
    """
    if not hasattr(recognizer, "conformal_scores_"):
        raise NotCalibratedError("drift is judged against validation probes: call calibrate(X_dev, y_dev) first")
    return DriftMonitor(
        recognizer.conformal_scores_.unknown, false_alarm_rate, np.random.default_rng(0) if rng is None else rng
    )


def _values(values: npt.ArrayLike, name: str) -> Float64Array:
    given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if given.ndim != 1 or not np.isfinite(given).all():
        raise InvalidInputError(
            f"{name} must be a row of finite numbers, got shape {given.shape}; leave out missing ones"
        )
    return given
