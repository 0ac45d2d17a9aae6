"""Development size: how many people must a calibration see before its numbers hold on others?

In every split some people are set aside for evaluation: half of them enrolled, half strangers. Of the others, n at a time are
development people, half enrolled in a gallery of their own and half strangers. They calibrate a recogniser of the evaluation
gallery, which then identifies the evaluation probes. For the certificate half of the same n people calibrate and the other half
certify; its risk is then measured in the evaluation gallery, whatever its size.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidParameterError
from holue.evaluation.metrics.calibration_error import expected_calibration_error
from holue.gallery.embeddings import Embeddings
from holue.progress import Progress
from holue.recognition.answer.identifications import Identifications
from holue.recognition.checks import check_share
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.risk.controller import RiskController

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
PEOPLE = (25, 50, 100, 200, 500, 1000, 2000)
FEWEST = 8
"""Development people: two enrolled and two strangers in each half."""
MOST_SAMPLES = 8
"""Of one person: a few people with hundreds of samples would be the whole result."""


@dataclass(frozen=True)
class SizeResult:
    """What so many development people gave, in every split in which they could calibrate."""

    people: int
    calibration_error: tuple[float, ...]  # of P(the answer is right)
    fpir: tuple[float, ...]
    dir: tuple[float, ...]
    certified: int  # splits in which the risk was certified
    filtered: tuple[float, ...]  # share of evaluation probes, in the certified splits
    risk: tuple[float, ...]  # share of wrong answers among the others
    refused: int  # splits in which the people could not calibrate

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class DevelopmentStudy:
    """Every size, and what was asked."""

    target_fpir: float
    target_risk: float
    enrolled: int
    splits: int
    sizes: tuple[SizeResult, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "sizes": [one.to_dict() for one in self.sizes]}


def development_study(
    X: object,
    y: object,
    *,
    people: Sequence[int] = PEOPLE,
    target_fpir: float = 0.05,
    target_risk: float = 0.05,
    enrolled: int = 200,
    splits: int = 10,
    seed: int = 0,
    progress: Progress | None = None,
) -> DevelopmentStudy:
    """Calibrate with more and more development people of samples ``X`` (n, d) of subjects ``y``, and measure on others.

    ``enrolled`` subjects with at least two samples are enrolled for evaluation, and as many others are its strangers. Sizes for
    which people are lacking are left out.

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(300), 3)
    >>> X = rng.normal(size=(300, 16))[y] + 0.7 * rng.normal(size=(900, 16))
    >>> study = development_study(X, y, people=[40, 160, 5000], enrolled=40, splits=1)
    >>> [one.people for one in study.sizes]
    [40, 160]
    """
    target_fpir, target_risk = check_share("target_fpir", target_fpir), check_share("target_risk", target_risk)
    if not people or min(people) < FEWEST:
        raise InvalidParameterError(f"people must be numbers of at least {FEWEST}, got {list(people)}")
    samples = Embeddings.from_samples(X)
    owner = np.unique(np.asarray(y), return_inverse=True)[1].astype(np.int64)
    counts = np.bincount(owner)
    several = int((counts >= 2).sum())
    # Half of the people of a part are enrolled, and need a sample to be searched with.
    left = several - enrolled, len(counts) - 2 * enrolled
    sizes = [n for n in sorted(set(people)) if (n + 1) // 2 <= left[0] and n <= left[1]]
    if enrolled < 2 or not sizes:
        raise InvalidParameterError(
            f"{enrolled} enrolled subjects, as many strangers and {min(people)} development people are wanted; of "
            f"{len(counts)} people {several} have two samples: lower enrolled or people"
        )
    found: dict[int, list[_Measured | None]] = {n: [] for n in sizes}
    for split in range(splits):
        world = _Split.draw(samples, owner, counts, enrolled, np.random.default_rng([seed, split]))
        for at, n in enumerate(sizes):
            found[n].append(world.measured(n, target_fpir, target_risk, split))
            if progress is not None:
                progress(split * len(sizes) + at + 1, splits * len(sizes), f"{n} people")
    return DevelopmentStudy(
        target_fpir, target_risk, enrolled, splits, tuple(_size(n, rows) for n, rows in found.items())
    )


@dataclass(frozen=True)
class _Measured:
    calibration_error: float
    fpir: float
    dir: float
    certified: tuple[float, float] | None  # filtered share and risk


def _size(people: int, rows: Sequence[_Measured | None]) -> SizeResult:
    known = [row for row in rows if row is not None]
    certified = [row.certified for row in known if row.certified is not None]
    return SizeResult(
        people,
        tuple(row.calibration_error for row in known),
        tuple(row.fpir for row in known),
        tuple(row.dir for row in known),
        len(certified),
        tuple(filtered for filtered, _ in certified),
        tuple(risk for _, risk in certified),
        len(rows) - len(known),
    )


@dataclass(frozen=True, eq=False)
class _People:
    """A gallery's samples, and the probes searched in it with their people."""

    gallery: Rows
    probes: Rows


@dataclass(frozen=True, eq=False)
class _Split:
    directions: npt.NDArray[np.floating]
    owner: Rows
    rank: Rows  # of a sample among those of its person; the first is enrolled
    evaluation: _People
    known: Rows  # development people with several samples, in the order in which they are taken
    others: Rows

    @classmethod
    def draw(cls, samples: Embeddings, owner: Rows, counts: Rows, enrolled: int, rng: np.random.Generator) -> _Split:
        """Deal out people and samples."""
        order = np.lexsort((rng.random(len(owner)), owner))
        rank = np.empty(len(owner), dtype=np.int64)
        rank[order] = np.arange(len(owner)) - np.searchsorted(owner[order], owner[order])
        several = rng.permutation(np.flatnonzero(counts >= 2))
        known, rest = several[:enrolled], np.concatenate([several[enrolled:], np.flatnonzero(counts < 2)])
        strangers = rng.choice(rest, enrolled, replace=False)
        left = several[enrolled:][~np.isin(several[enrolled:], strangers)]
        others = rng.permutation(rest[~np.isin(rest, strangers)])
        return cls(samples.directions, owner, rank, _people(owner, rank, known, strangers), left, others)

    def measured(self, people: int, target_fpir: float, target_risk: float, seed: int) -> _Measured | None:
        """What ``people`` development people give; None where they cannot calibrate."""
        known = self.known[: (people + 1) // 2]
        strangers = self.others[~np.isin(self.others, known)][: people // 2]
        if len(known) < (people + 1) // 2 or len(strangers) < people // 2:
            return None
        development = _people(self.owner, self.rank, known, strangers)
        recognizer = self._calibrated(development, development.probes, target_fpir, seed)
        if recognizer is None:
            return None
        answers = recognizer.identify(self.directions[self.evaluation.probes])
        mated, right = self._truth(answers)
        return _Measured(
            expected_calibration_error(np.clip(1 - answers.uncertainty, 0, 1), correct=right),
            float(answers.accepted[~mated].mean()),
            float(right[mated].mean()),
            self._certified(development, known, strangers, target_fpir, target_risk, seed),
        )

    def _calibrated(self, part: _People, probes: Rows, target: float, seed: int) -> OpenSetRecognizer | None:
        recognizer = OpenSetRecognizer("holue-plus", target_fpir=target, random_state=seed)
        recognizer.fit(self.directions[self.evaluation.gallery], self.owner[self.evaluation.gallery])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few people are what is studied
                recognizer.calibrate(self.directions[probes], self.owner[probes], gallery=self._gallery(part))
        except CalibrationDataError:
            return None
        return recognizer

    def _truth(self, answers: Identifications) -> tuple[Flags, Flags]:
        """Whose evaluation probes are mated, and which answers are right."""
        truth = self.owner[self.evaluation.probes]
        mated = np.isin(truth, self.owner[self.evaluation.gallery])
        best = answers.candidate_subjects[:, 0] == truth
        return mated, np.where(mated, answers.accepted & best, answers.rejected)

    def _gallery(self, part: _People) -> tuple[npt.NDArray[np.floating], Rows]:
        return self.directions[part.gallery], self.owner[part.gallery]

    def _certified(
        self, part: _People, known: Rows, strangers: Rows, target_fpir: float, target_risk: float, seed: int
    ) -> tuple[float, float] | None:
        halves = np.concatenate([known[::2], strangers[::2]])
        calibrating = np.isin(self.owner[part.probes], halves)
        recognizer = self._calibrated(part, part.probes[calibrating], target_fpir, seed)
        if recognizer is None:
            return None
        controller = RiskController("error", target_level=target_risk, unit="subject")
        certifying = part.probes[~calibrating]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                controller.fit(
                    recognizer,
                    self.directions[certifying],
                    self.owner[certifying],
                    gallery=self._gallery(part),
                    subject=self.owner[certifying],
                )
        except CalibrationDataError:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of a gallery of another size than the certificate's: that is measured here
            answers = recognizer.identify(self.directions[self.evaluation.probes])
        _, right = self._truth(answers)
        automatic = ~answers.filtered
        wrong = float((~right[automatic]).mean()) if automatic.any() else 0.0
        return float(answers.filtered.mean()), wrong


def _people(owner: Rows, rank: Rows, known: Rows, strangers: Rows) -> _People:
    inside, few = np.isin(owner, known), rank <= MOST_SAMPLES
    probes = (inside & few & (rank > 0)) | (np.isin(owner, strangers) & few)
    return _People(np.flatnonzero(inside & (rank == 0)), np.flatnonzero(probes))


def middle(values: Sequence[float]) -> tuple[float, float, float] | None:
    """The median, and the 10th and 90th percentiles.

    >>> middle([1.0, 2.0, 3.0])
    (2.0, 1.2, 2.8)
    """
    if not values:
        return None
    low, mid, high = np.quantile(np.asarray(values, dtype=np.float64), (0.1, 0.5, 0.9))
    return float(mid), float(low), float(high)
