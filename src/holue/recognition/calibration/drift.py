"""Drift: has the world moved away from what a recogniser was calibrated on, judged probe by probe.

A conformal test martingale (Vovk, Gammerman and Shafer 2022, chapter 8). The n-th value gets the p-value of its rank among the
reference and all values before it, ties broken at random; as long as the values are exchangeable with the reference the
p-values are independent and uniform. A capital bets on them with the functions, each of mean 1,

    1 + e (2p − 1),  e = ±1, ±½        values fell or rose
    1 + e (2|2p − 1| − 1),  e = ±1     values spread or drew together

and a share JUMP of it moves between them and an idle purse at every step (the "simple jumper"), so that a drift that starts
late is found as well. The capital has mean 1, so by Ville's inequality it *ever* reaches 1/α with probability at most α: the
false-alarm rate of the whole run, however long.

Probes of one person are alike, and not exchangeable with those of others: two people with ten probes each would be taken for
twenty probes that drift together. So a person counts once: where ``subject`` names the people, the first probe of each is
judged, in the reference and afterwards, and further ones are counted but not judged. People exchangeable with those of the
reference are then all the guarantee asks for, however their probes hang together.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidInputError, NotCalibratedError
from holue.gallery.embeddings import Float64Array
from holue.gallery.subjects import as_subjects
from holue.recognition.checks import check_share
from holue.recognition.risk.conformal import ConformalScores

LEVEL_BETS: Float64Array = np.array([0.0, -1.0, -0.5, 0.5, 1.0, 0.0, 0.0])
SPREAD_BETS: Float64Array = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 1.0])
JUMP = 0.01
SMALLEST_REFERENCE = 50
"""People, or values where nobody is named."""


@dataclass
class DriftMonitor:
    """A running test that values keep coming from where the reference came from.

    Feed it one statistic of probes that are like those of the reference: the sample concentration of all probes, or the best
    score or ``log p_unknown`` of probes known to be strangers. It changes with every update. ``subject`` names the person
    behind each reference value; without it every value counts as a person of its own.

    >>> rng = np.random.default_rng(0)
    >>> monitor = DriftMonitor(rng.normal(size=1000), false_alarm_rate=0.01, rng=rng)
    >>> monitor.update(rng.normal(size=300)).alarm, monitor.update(rng.normal(size=300) - 1).alarm
    (False, True)
    """

    reference: npt.ArrayLike
    false_alarm_rate: float = 0.01
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    subject: object = None

    def __post_init__(self) -> None:
        check_share("false_alarm_rate", self.false_alarm_rate)
        self._people: set[object] = set()
        values = _values(self.reference, "reference")
        self._seen: list[float] = np.sort(values[self._first_probes(self.subject, len(values))]).tolist()
        if len(self._seen) < SMALLEST_REFERENCE:
            kind = "values" if self.subject is None else "people"
            raise CalibrationDataError(
                f"drift is judged against at least {SMALLEST_REFERENCE} reference {kind}, got {len(self._seen)}; bring "
                "validation probes of more people"
            )
        self._log_capital = 0.0
        self._purses = np.full(len(LEVEL_BETS), 1.0 / len(LEVEL_BETS))
        self._n = self._judged = 0
        self._alarm_at: int | None = None

    def update(self, values: npt.ArrayLike, subject: object = None) -> DriftState:
        """Take in further values, in the order they came, with the person behind each.

        >>> monitor = DriftMonitor(np.arange(100.0))
        >>> monitor.update([5.0, 6.0, 50.0], subject=["ann", "ann", "bob"]).n_judged
        2
        """
        given = _values(values, "values")
        for value, judged in zip(given.tolist(), self._first_probes(subject, len(given)).tolist()):
            self._n += 1
            if judged:
                self._bet(self._p_value(value))
                insort(self._seen, value)
        return self.state

    def _first_probes(self, subject: object, n: int) -> npt.NDArray[np.bool_]:
        """Which of n probes are the first of their person; all of them where nobody is named."""
        if subject is None:
            return np.ones(n, dtype=bool)
        new = np.zeros(n, dtype=bool)
        for i, person in enumerate(as_subjects(subject, n, field="subject").tolist()):
            new[i] = person not in self._people
            self._people.add(person)
        return new

    @property
    def state(self) -> DriftState:
        """Where the test stands."""
        capital = float(np.exp(min(self._log_capital, 700.0)))
        return DriftState(self._n, capital, self._alarm_at, self.false_alarm_rate, self._judged)

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
        self._judged += 1
        if self._alarm_at is None and self._log_capital >= -np.log(self.false_alarm_rate):
            self._alarm_at = self._n


@dataclass(frozen=True)
class DriftState:
    """How much evidence against "nothing has changed" there is after n values."""

    n: int
    capital: float  # mean 1 while nothing changes
    alarm_at: int | None  # the value at which the capital first reached 1/α
    false_alarm_rate: float
    n_judged: int  # people, or all n values where nobody was named

    @property
    def alarm(self) -> bool:
        """Whether the capital ever reached 1/α; it stays once it did."""
        return self.alarm_at is not None

    def __str__(self) -> str:
        probes = f"{self.n} probes" if self.n_judged == self.n else f"{self.n} probes of {self.n_judged} new people"
        if self.alarm_at is None:
            return f"no drift seen in {probes}"
        return (
            f"drift in {probes}: probe {self.alarm_at} settled it (without drift an alarm in the whole run has probability at "
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

    Feed it ``np.log(identify(X).model_p_unknown)``, with the person behind each probe as ``subject`` where several show one. The
    reference counts each person once if ``calibrate`` was told who they are. It holds while the gallery is the one that was
    calibrated, or of its size.
    """
    if not hasattr(recognizer, "conformal_scores_"):
        raise NotCalibratedError("drift is judged against validation probes: call calibrate(X_dev, y_dev) first")
    known = recognizer.conformal_scores_
    # The people of the reference have numbers; a leading letter keeps them apart from whoever has a number as a name later.
    people = np.char.add("reference ", known.unknown_person.astype(str))
    return DriftMonitor(known.unknown, false_alarm_rate, np.random.default_rng(0) if rng is None else rng, people)


def _values(values: npt.ArrayLike, name: str) -> Float64Array:
    given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if given.ndim != 1 or not np.isfinite(given).all():
        raise InvalidInputError(
            f"{name} must be a row of finite numbers, got shape {given.shape}; leave out missing ones"
        )
    return given
