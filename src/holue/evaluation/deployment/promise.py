"""Promise: does a threshold keep FPIR at or below its target, over many random splits of the people of a data set?

In every split some subjects are enrolled and the threshold is set in one of two ways,

    probes          on strangers drawn with replacement from all who are never enrolled; the truth is the FPIR of all of these
    leave-one-out   on the enrolled samples; the truth is the FPIR of all who are never enrolled

once aimed at the target and once with a confidence over people. Then more subjects are enrolled, the threshold follows, and the
truth is taken again. A promise is broken in a split where the true FPIR is above the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidParameterError
from holue.evaluation.report.drawing import BLUE, GREY, VERMILLION, Drawing, look, new_figure
from holue.evidence.leave_one_out import evidence_of_others
from holue.evidence.scan import scan
from holue.gallery.embeddings import Embeddings, Float64Array, FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.left_out import LeftOut
from holue.progress import Progress
from holue.recognition.calibration.leave_one_out import LeftOutProbes
from holue.recognition.checks import check_share
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.model.strangers import Strangers
from holue.recognition.risk.binomial import clopper_pearson
from holue.recognition.settings import Settings

Rows = npt.NDArray[np.int64]
Way = Literal["probes", "leave-one-out"]
WAYS: tuple[Way, ...] = ("probes", "leave-one-out")
MOST_SAMPLES = 8
"""Of one person: a few people with hundreds of samples would be the whole FPIR."""


@dataclass(frozen=True)
class Kept:
    """How one way of choosing a threshold did at one target and one size of gallery, over all splits."""

    target_fpir: float
    fpir_confidence: float | None
    n_subjects: int
    fpir: tuple[float, ...]  # the true one, of every split in which a threshold could be set
    dir: tuple[float, ...]  # share of probes of enrolled subjects that are accepted and named rightly
    threshold: tuple[float, ...]
    refused: int  # splits in which the people could not set a threshold

    @property
    def broken(self) -> int:
        """Splits whose FPIR is above the target."""
        return sum(value > self.target_fpir for value in self.fpir)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Clopper-Pearson interval of the share of broken splits."""
        return clopper_pearson(self.broken, len(self.fpir), 0.95) if self.fpir else (0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        seen = bool(self.fpir)
        return {
            **asdict(self),
            "splits": len(self.fpir),
            "broken": self.broken,
            "broken_share": self.broken / len(self.fpir) if seen else None,
            "broken_interval": list(self.interval),
            "mean_fpir": float(np.mean(self.fpir)) if seen else None,
            "mean_dir": float(np.mean(self.dir)) if seen else None,
            "mean_threshold": float(np.mean(self.threshold)) if seen else None,
        }


@dataclass(frozen=True)
class PromiseStudy:
    """All of them, and what was split."""

    way: Way
    people: int  # strangers that set the threshold, or enrolled people
    splits: int
    kept: tuple[Kept, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "kept": [one.to_dict() for one in self.kept]}


def promise_study(
    X: object,
    y: object,
    *,
    targets: Sequence[float] = (0.05, 0.01),
    confidence: float = 0.95,
    way: Way = "probes",
    enrolled: int = 100,
    people: int = 300,
    grown: int | None = None,
    splits: int = 200,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PromiseStudy:
    """Split the people of samples ``X`` (n, d) of subjects ``y`` again and again.

    ``enrolled`` subjects with at least two samples are enrolled, ``people`` strangers set the threshold (with
    ``way="probes"``), and ``grown`` subjects are enrolled in the end.

    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(np.arange(300), 3)
    >>> X = rng.normal(size=(300, 32))[y] + 0.6 * rng.normal(size=(900, 32))
    >>> study = promise_study(X, y, targets=[0.1], enrolled=40, people=60, splits=5)
    >>> [(one.fpir_confidence, len(one.fpir)) for one in study.kept]
    [(None, 5), (0.95, 5)]
    """
    check_share("confidence", confidence)
    for target in targets:
        check_share("target_fpir", target)
    if way not in WAYS:
        raise InvalidParameterError(f"way must be {' or '.join(WAYS)}, got {way!r}")
    samples = Embeddings.from_samples(X)
    owner = np.unique(np.asarray(y), return_inverse=True)[1].astype(np.int64)
    counts = np.bincount(owner)
    most, several = grown or enrolled, np.flatnonzero(counts >= 2)
    if most < enrolled or enrolled < 3:
        raise InvalidParameterError(f"enrolled must be at least 3 and grown no less, got {enrolled} and {most}")
    if len(several) < enrolled or len(counts) < most + 2:
        raise InvalidParameterError(
            f"{enrolled} enrolled subjects need two samples each and strangers must remain beside {most}: there are "
            f"{len(several)} subjects with two samples, {len(counts)} in all; lower enrolled or grown"
        )
    choices = [(target, level) for target in targets for level in (None, confidence)]
    sizes = sorted({enrolled, most})
    found: dict[tuple[float, float | None, int], list[tuple[float, float, float]]] = {
        (*choice, size): [] for choice in choices for size in sizes
    }
    refused = dict.fromkeys(found, 0)
    for split in range(splits):
        world = _Split.draw(samples, owner, several, enrolled, most, way, np.random.default_rng([seed, split]))
        for target, level in choices:
            try:
                point = world.point(target, level, people, threads)
            except CalibrationDataError:
                for size in sizes:
                    refused[target, level, size] += 1
                continue
            for size in sizes:
                found[target, level, size].append(world.truth(point, size, threads))
        if progress is not None:
            progress(split + 1, splits, "")
    kept = []
    for (target, level, size), rows in found.items():
        fpir, detected, taus = (tuple(row[column] for row in rows) for column in range(3))
        kept.append(Kept(target, level, size, fpir, detected, taus, refused[target, level, size]))
    return PromiseStudy(way, people if way == "probes" else enrolled, splits, tuple(kept))


def people_apart(X: object, y: object, cosine: float) -> npt.NDArray[np.bool_]:
    """Which samples are of people whose template has at most this cosine with everybody else's; the others may be one person.

    >>> people_apart([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]], ["ann", "anna", "bob"], 0.9).tolist()
    [False, False, True]
    """
    pooled = Gallery.from_samples(X, y)
    own = np.arange(len(pooled))
    others = evidence_of_others(pooled.directions, own, pooled, [], top_k=1)
    apart = others.top_scores[:, 0] <= cosine
    return np.asarray(apart[pooled.index_of(np.asarray(y))])


@dataclass(eq=False)
class _Split:
    """Who is enrolled in one split, who never is, and the scores of both."""

    directions: FloatArray
    owner: Rows
    gallery: Gallery  # of all, in the order of enrolment
    first: int
    learning: Rows  # samples of the first enrolled that a leave-one-out calibration gets
    mated: Rows
    strangers: Rows
    way: Way
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self._scores: dict[tuple[int, str], tuple[Float64Array, Rows]] = {}
        self._drawn: tuple[Rows, Rows] | None = None

    @classmethod
    def draw(
        cls,
        samples: Embeddings,
        owner: Rows,
        several: Rows,
        enrolled: int,
        most: int,
        way: Way,
        rng: np.random.Generator,
    ) -> _Split:
        """Deal out people and samples."""
        first = rng.choice(several, enrolled, replace=False)
        rest = rng.permutation(np.setdiff1d(np.arange(owner.max() + 1), first))
        later, outside = rest[: most - enrolled], rest[most - enrolled :]
        order = np.lexsort((rng.random(len(owner)), owner))
        rank = np.empty(len(owner), dtype=np.int64)
        rank[order] = np.arange(len(owner)) - np.searchsorted(owner[order], owner[order])
        few = rank < MOST_SAMPLES
        count = np.bincount(owner, few).astype(np.int64)
        is_first = np.isin(owner, first)
        # Half of a subject's samples are enrolled, so that one can be left out; probes enrol one and search for the others.
        half = 1 if way == "probes" else np.maximum((count[owner] + 1) // 2, 2)
        learning = np.flatnonzero(is_first & few & (rank < half))
        mated = np.flatnonzero(is_first & few & (rank >= half))
        single = np.flatnonzero(np.isin(owner, later) & (rank == 0))
        rows = np.concatenate([learning, single])
        pooled = Gallery.from_samples(samples.directions[rows], owner[rows])
        place = np.concatenate([first, later])
        gallery = Gallery.of(place, pooled.rows(pooled.index_of(place)))
        strangers = np.flatnonzero(np.isin(owner, outside) & few)
        return cls(samples.directions, owner, gallery, enrolled, learning, mated, strangers, way, rng)

    def point(self, target: float, confidence: float | None, people: int, threads: int | None) -> OperatingPoint:
        """The operating point of the first gallery."""
        if self.way == "leave-one-out":
            left = LeftOut.of(self.directions[self.learning], self.owner[self.learning])
            source = LeftOutProbes.of(
                "galue", self.directions[self.learning], self.owner[self.learning], None, None, "uniform", left.gallery
            )
            return source.point_at_fpir(_settings(target, confidence, threads))
        scores, _ = self.best(self.first, "strangers", threads)
        if self._drawn is None:
            # As many independent draws of a person as there are people to calibrate on, each with all of its samples.
            who = self.owner[self.strangers]
            drawn = self.rng.choice(np.unique(who), people)
            order, starts = np.argsort(who, kind="stable"), np.sort(who)
            rows = [order[np.searchsorted(starts, one) : np.searchsorted(starts, one, side="right")] for one in drawn]
            self._drawn = np.concatenate(rows), np.repeat(np.arange(people), [len(some) for some in rows])
        rows_drawn, person = self._drawn
        return OperatingPoint.at_fpir(
            Strangers.of(scores[rows_drawn], person),
            target,
            dim=self.gallery.dim,
            n_subjects=self.first,
            confidence=confidence,
        )

    def truth(self, point: OperatingPoint, size: int, threads: int | None) -> tuple[float, float, float]:
        """FPIR of everybody who is never enrolled, DIR of the first enrolled, and the threshold at a size."""
        tau = point.for_gallery(size, "fpir").threshold
        scores, _ = self.best(size, "strangers", threads)
        who = self.owner[self.strangers]
        weight = np.ones(len(scores)) if self.way == "probes" else 1.0 / np.bincount(who)[who]
        mated, named = self.best(size, "mated", threads)
        right = self.gallery.subjects[named] == self.owner[self.mated]
        detected = float(np.mean((mated >= tau) & right)) if len(mated) else float("nan")
        return float(weight[scores >= tau].sum() / weight.sum()), detected, tau

    def best(self, size: int, whose: str, threads: int | None) -> tuple[Float64Array, Rows]:
        """Best score and its row in the gallery of the first ``size`` subjects."""
        if (size, whose) not in self._scores:
            rows = self.strangers if whose == "strangers" else self.mated
            evidence = scan(self.directions[rows], self.gallery.directions[:size], [], top_k=1, threads=threads)
            self._scores[size, whose] = (
                np.asarray(evidence.top_scores[:, 0], dtype=np.float64),
                evidence.top_index[:, 0],
            )
        return self._scores[size, whose]


def draw_promise(study: PromiseStudy) -> Drawing:
    """The true FPIR of every split beside its target, aimed at and promised."""
    name = "fpir_promise"
    kept = [one for one in study.kept if one.fpir]
    kept.sort(key=lambda one: (-one.target_fpir, one.n_subjects, one.fpir_confidence is not None))
    with look(name):
        figure, ax = new_figure(7.5, 0.5 * len(kept) + 1)
        rng = np.random.default_rng(0)
        for row, one in enumerate(kept):
            relative = np.array(one.fpir) / one.target_fpir
            color = VERMILLION if one.fpir_confidence is None else BLUE
            ax.scatter(
                relative, row + rng.uniform(-0.28, 0.28, len(relative)), s=6, alpha=0.5, color=color, linewidth=0
            )
            ax.text(
                1.01, row, f"{one.broken / len(one.fpir):.1%} above", transform=ax.get_yaxis_transform(), va="center"
            )
        ax.axvline(1.0, color=GREY, linewidth=1.2)
        ax.set_yticks(
            range(len(kept)),
            [
                f"target {one.target_fpir:g}, {one.n_subjects} subjects, "
                + ("aimed at" if one.fpir_confidence is None else f"with {one.fpir_confidence:.0%}")
                for one in kept
            ],
        )
        ax.set_ylim(len(kept) - 0.4, -0.6)
        ax.set_xlim(0, min(5.0, max(2.0, *(float(np.max(one.fpir)) / one.target_fpir for one in kept))) * 1.03)
        ax.set_xlabel("true FPIR of a split / target")
    caption = (
        f"{study.splits} splits. Every dot is a split; right of the line more strangers are accepted than the target allows. "
        f"The threshold comes from {study.people} people by {study.way}."
    )
    return Drawing(name, caption, figure)


def _settings(target: float, confidence: float | None, threads: int | None) -> Settings:
    return Settings(
        method="galue",
        target_fpir=target,
        fpir_confidence=confidence,
        unknown_prior=0.5,
        temperature=20.0,
        random_state=0,
        threshold=None,
        hold="fpir",
        weighting="uniform",
        threads=threads,
        search="exact",
        filter_below=None,
        embedding_model=None,
    )
