"""Gallery growth: what happens to FPIR when a gallery grows, with a fixed threshold and with three that follow it.

Subjects are enrolled in random order. Everybody is a stranger as well: whoever is not enrolled yet, and whoever is, with their
own subject left out. Half of the people set the operating point, the other half measure FPIR; every person counts the same.

    fixed      τ as it was for the first gallery
    held       κ and β as they were: τ moves by ln(K′/K)/κ
    followed   τ from the tail of strangers' scores at the first size (see recognition/model/stranger_tail.py)
    re-solved  τ from the first half's scores at the new size
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from holue.errors import GalleryTooSmallError, InvalidParameterError
from holue.evaluation.report.drawing import BLUE, GREEN, GREY, ORANGE, VERMILLION, Drawing, look, new_figure
from holue.evidence.leave_one_out import evidence_of_others
from holue.evidence.scan import scan
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.calibration.leave_one_out import weighted_threshold
from holue.recognition.checks import check_share
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.model.stranger_tail import StrangerTail
from holue.recognition.model.strangers import Strangers


@dataclass(frozen=True)
class GrowthStep:
    """Thresholds and FPIR at one size of the gallery."""

    n_subjects: int
    threshold_fixed: float
    threshold_held: float
    threshold_followed: float
    threshold_resolved: float
    fpir_fixed: float
    fpir_held: float
    fpir_followed: float
    fpir_resolved: float


@dataclass(frozen=True)
class GalleryGrowth:
    """The steps, from the smallest gallery to all subjects."""

    target_fpir: float
    n_people: int  # who measure FPIR
    steps: tuple[GrowthStep, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "target_fpir": self.target_fpir,
            "n_people": self.n_people,
            "steps": [asdict(step) for step in self.steps],
        }


def gallery_growth(
    X: object,
    y: object,
    *,
    target_fpir: float = 0.05,
    first: int = 100,
    rng: np.random.Generator,
    threads: int | None = None,
) -> GalleryGrowth:
    """Enrol ``first`` subjects, then twice as many, and so on, up to all of them.

    >>> from holue.datasets.simulated import simulate
    >>> samples = simulate(n_subjects=400, look_alike_pairs=0, rng=np.random.default_rng(0)).gallery
    >>> growth = gallery_growth(samples.X, samples.person, first=50, rng=np.random.default_rng(1))
    >>> [step.n_subjects for step in growth.steps]
    [50, 100, 200, 400]
    >>> growth.steps[-1].fpir_fixed > 3 * growth.steps[-1].fpir_followed
    True
    """
    check_share("target_fpir", target_fpir)
    if isinstance(first, bool) or not isinstance(first, int | np.integer) or first < 2:
        raise InvalidParameterError(f"first must be a whole number of at least 2, got {first!r}")
    samples = Embeddings.from_samples(X)
    pooled = Gallery.from_samples(X, y)
    n_subjects = len(pooled)
    if n_subjects < 2 * first:
        raise GalleryTooSmallError(
            f"growth from first={first} subjects needs at least {2 * first}, got {n_subjects}; lower it to "
            f"{n_subjects // 2} or less, or bring more subjects"
        )
    order = rng.permutation(n_subjects)
    place = np.empty(n_subjects, dtype=np.int64)
    place[order] = np.arange(n_subjects)
    own = place[pooled.index_of(np.asarray(y))]  # where each sample's subject is enrolled
    weight = 1.0 / np.bincount(own)[own]
    measures = rng.permutation(n_subjects)[own] % 2 == 1
    directions = pooled.directions[order]

    sizes = [*(first * 2**k for k in range(64) if first * 2**k < n_subjects), n_subjects]
    best = np.full(len(samples), -np.inf)
    steps: list[GrowthStep] = []
    start: OperatingPoint | None = None
    tail: StrangerTail | None = None
    for begin, end in zip([0, *sizes], sizes):
        _take_in(best, samples, own, directions, begin, end, threads)
        tau = weighted_threshold(best[~measures], weight[~measures], target_fpir)
        if start is None or tail is None:
            behind = Strangers.of(best[~measures], own[~measures], people_count_alike=True)
            tail = StrangerTail.of(behind, n_subjects=end, target_fpir=target_fpir)
            start = OperatingPoint.solve(dim=samples.dim, n_subjects=end, threshold=tau)
        thresholds = (
            start.threshold,
            start.for_gallery(end, "model").threshold,
            tail.threshold(end, target_fpir),
            tau,
        )

        def fpir(threshold: float) -> float:
            return float(weight[measures & (best >= threshold)].sum() / weight[measures].sum())

        steps.append(GrowthStep(end, *thresholds, *map(fpir, thresholds)))
    return GalleryGrowth(float(target_fpir), len(np.unique(own[measures])), tuple(steps))


def draw_growth(growth: GalleryGrowth) -> Drawing:
    """FPIR against the size of the gallery, three ways."""
    name = "gallery_growth"
    sizes = [step.n_subjects for step in growth.steps]
    with look(name):
        figure, ax = new_figure(7, 4)
        for way, label, color, marker in (
            ("fixed", "threshold fixed", VERMILLION, "s"),
            ("held", "κ and β held", ORANGE, "D"),
            ("followed", "following the strangers' tail", BLUE, "o"),
            ("resolved", "solved again at this size", GREEN, "^"),
        ):
            values = [getattr(step, f"fpir_{way}") for step in growth.steps]
            ax.plot(sizes, values, label=label, color=color, marker=marker, markersize=4)
        ax.axhline(growth.target_fpir, color=GREY, linewidth=1, linestyle=(0, (4, 2)), label="target")
        ax.set_xscale("log")
        ax.set_ylim(bottom=0)
        ax.set_xlabel("enrolled subjects")
        ax.set_ylabel("FPIR")
        ax.legend(loc="upper left")
    last = growth.steps[-1]
    caption = (
        f"From {sizes[0]} to {sizes[-1]} subjects. At a fixed threshold FPIR grows from {growth.steps[0].fpir_fixed:.3f} to "
        f"{last.fpir_fixed:.3f}; with the model held it is {last.fpir_held:.3f}, following the tail of strangers "
        f"{last.fpir_followed:.3f}, solved again {last.fpir_resolved:.3f} (target {growth.target_fpir:g})."
    )
    return Drawing(name, caption, figure)


def _take_in(
    best: Float64Array,
    samples: Embeddings,
    own: np.ndarray[Any, np.dtype[np.int64]],
    directions: np.ndarray[Any, np.dtype[Any]],
    begin: int,
    end: int,
    threads: int | None,
) -> None:
    """Raise every sample's best score by the subjects ``begin .. end``, its own among them left out."""
    block = directions[begin:end]
    inside = (own >= begin) & (own < end)
    for rows, leave_out in ((np.flatnonzero(~inside), False), (np.flatnonzero(inside), True)):
        if len(rows) == 0:
            continue
        if not leave_out:
            evidence = scan(samples.directions[rows], block, [], top_k=1, threads=threads)
        elif len(block) > 1:
            part = Gallery.of(np.arange(len(block)), block)
            evidence = evidence_of_others(
                samples.directions[rows], own[rows] - begin, part, [], top_k=1, threads=threads
            )
        else:
            continue
        best[rows] = np.maximum(best[rows], evidence.top_scores[:, 0])
