"""Track page: the numbers of a track study, and their tables as markdown; ``holue answers --tracks`` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.experiments.answer_study import Claims
from holue.experiments.experiment import Size
from holue.experiments.track_study import ASKED, CALIBRATED_ON, RISKS, TRACK_SETS, Stopped, TrackAnswers, study_tracks
from holue.progress import Progress

LEVEL = 0.95
RESAMPLES = 1000


@dataclass(frozen=True)
class TrackRow:
    """Tracks of one length, over all splits."""

    data: str
    samples: int
    calibrated_on: str  # one of CALIBRATED_ON
    splits: int
    people: int
    answers: int  # in all splits
    error: float  # expected calibration error, mean of the splits
    worst_error: float
    chance_error: float  # that right probabilities would have by chance, were tracks independent
    pooled_error: float  # that of the answers of all splits together, which chance moves less
    debiased_error: float  # root mean square error without the part of chance; people are resampled, not tracks
    right: float
    too_sure: float  # mean P(right) less the share that is right
    too_sure_interval: tuple[float, float]  # 95 %, bootstrap over people
    strangers_named: float
    strangers_accepted: float

    @classmethod
    def of(cls, data: str, samples: int, kind: str, splits: Sequence[Sequence[TrackAnswers]]) -> TrackRow:
        """From the answers of every split."""
        rng = np.random.default_rng(0)
        claims = [Claims.joined([one.claims for one in split]) for split in splits]
        everything = Claims.joined(claims)
        errors = [one.error for one in claims]
        flat = [one for split in splits for one in split]
        gap = everything.probability - everything.came_true
        return cls(
            data, samples, kind, len(splits), len(np.unique(everything.person)), len(gap), float(np.mean(errors)), max(errors),
            float(np.mean([one.by_chance(rng) for one in claims])), everything.error,
            max(float(np.mean([one.squared_error for one in claims])), 0.0) ** 0.5, float(everything.came_true.mean()),
            float(gap.mean()), _interval(gap, everything, rng), _share([one.strangers_named for one in flat]),
            _share([one.strangers_accepted for one in flat]),
        )  # fmt: skip

    def __str__(self) -> str:
        """A row of the table."""
        lower, upper = self.too_sure_interval
        return (
            f"| {self.data} | {self.samples} | {self.calibrated_on} | {self.error:.3f} ({self.worst_error:.3f}) "
            f"| {self.chance_error:.3f} | {self.pooled_error:.3f} | {self.debiased_error:.3f} | {self.right:.2f} "
            f"| {self.too_sure:+.3f} ({lower:+.3f} to {upper:+.3f}) "
            f"| {self.strangers_named:.2f} | {self.strangers_accepted:.2f} |"
        )


@dataclass(frozen=True)
class StopRow:
    """Tracks that end as soon as they are sure, over all splits; at most ten samples."""

    data: str
    risk: float
    tracks: int
    taken: float
    samples: float
    wrong: float
    said: float

    @classmethod
    def of(cls, data: str, risk: float, ended: Sequence[Stopped]) -> StopRow:
        """From the tracks of every split."""
        samples = np.concatenate([one.samples for one in ended])
        taken = samples > 0
        wrong, said = (np.concatenate([getattr(one, name) for one in ended])[taken] for name in ("wrong", "said"))
        means = [float(values.mean()) if taken.any() else float("nan") for values in (samples[taken], wrong, said)]
        return cls(data, risk, len(samples), float(taken.mean()), *means)

    def __str__(self) -> str:
        """A row of the table."""
        start = f"| {self.data} | {self.risk:g} | {self.taken:.0%} | {self.samples:.1f} samples"
        return f"{start} | {self.wrong:.3f} | {self.said:.3f} |"


def track_tables(
    sets: Sequence[str], seeds: int, progress: Progress | None = None
) -> tuple[list[TrackRow], list[StopRow]]:
    """The rows of both tables of some sets: calibration errors by length, and what stopping early costs."""
    rows: list[TrackRow] = []
    stops: list[StopRow] = []
    for done, key in enumerate(sets):
        if progress is not None:
            progress(done, len(sets), key)
        name, split = TRACK_SETS[key](Size())
        results = [study_tracks(*split(seed), seed=seed) for seed in range(seeds)]
        rows += [
            TrackRow.of(name, length, kind, [one.answers[kind, length] for one in results])
            for length in ASKED
            for kind in CALIBRATED_ON
        ]
        stops += [StopRow.of(name, risk, [each for one in results for each in one.stopped[risk]]) for risk in RISKS]
    return rows, stops


def track_page(rows: Sequence[TrackRow], stops: Sequence[StopRow]) -> str:
    """Both tables with their headings."""
    heads = (
        "| data | samples | calibrated on | error (worst split) | by chance | all splits | debiased | right | "
        f"too sure by (95 %, people) | strangers named | accepted at τ |\n|{'---|' * 11}",
        f"| data | risk | answers taken | after | wrong | P(wrong) said |\n|{'---|' * 6}",
    )
    tables = (list(map(str, rows)), list(map(str, stops)))
    return "\n\n".join("\n".join([head, *lines]) for head, lines in zip(heads, tables)) + "\n"


def _interval(gap: np.ndarray, claims: Claims, rng: np.random.Generator) -> tuple[float, float]:
    resamples = SubjectBootstrap.draw(claims.person.tolist(), n_resamples=RESAMPLES, rng=rng)
    size = resamples.n_subjects
    sums = np.bincount(resamples.cluster, weights=gap, minlength=size)
    counts = np.bincount(resamples.cluster, minlength=size)
    drawn = resamples.times_drawn.astype(np.float64)
    means = (drawn @ sums) / (drawn @ counts)
    lower, upper = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(lower), float(upper)


def _share(some: Sequence[np.ndarray]) -> float:
    return float(np.concatenate(some).mean())
