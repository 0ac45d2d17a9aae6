"""Approximate benchmark: approximate evidence in turn with the exact scan of the same gallery, and how far it is off.

The concentration is the one that accepts 1 in 100 strangers: κ follows from the 99 % quantile of their best scores, as in
calibration.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from holue.bench.clusters import Draw, Families, enrol, mated_probes
from holue.bench.rounds import time_in_turn
from holue.bench.systems import Answer
from holue.bench.world import TEMPERATURE, TOP_K, Float32Array
from holue.evaluation.drawing import BLUE, GREY, ORANGE, Drawing, look, new_figure
from holue.evidence.approximate import ApproximateIndex
from holue.evidence.evidence import Evidence
from holue.evidence.scan import scan
from holue.recognition.operating import concentration_from_threshold, threshold_from_concentration

if TYPE_CHECKING:
    from pathlib import Path

Result = dict[str, Any]

BATCHES, THREADS = (1, 16, 256), (1, 2)
MATED_COSINE, MATED_SPREAD = 0.85, 0.03
LOWEST_MATED_COSINE = 0.8
"""What the number of lists is chosen for: mated probes are to be found down to this cosine."""
FPIR = 0.01
LARGEST_COPY = 2_000_000
"""Subjects up to which FAISS gets a copy of its own."""
PAUSE = 0.25


@dataclass(frozen=True, eq=False)
class Case:
    """A gallery with its index, and probes of which the first half is mated."""

    gallery: Float32Array
    index: ApproximateIndex
    probes: Float32Array
    sharpness: npt.NDArray[np.float64]  # κ and κ/T
    build_seconds: float

    @classmethod
    def make(
        cls,
        draw: Draw,
        rng: np.random.Generator,
        n_subjects: int,
        *,
        n_probes: int = 2000,
        n_lists: int | None = None,
        path: Path | None = None,
        seed: int = 0,
    ) -> Case:
        """Enrol, build the index, draw the probes and set the concentration."""
        gallery = enrol(draw, rng, n_subjects, path)
        start = time.perf_counter()
        index = ApproximateIndex.build(gallery, n_lists=n_lists, mated_cosine=LOWEST_MATED_COSINE, seed=seed)
        took = time.perf_counter() - start
        strangers = draw(rng, n_probes - n_probes // 2)
        mated = mated_probes(gallery, rng, n_probes // 2, MATED_COSINE, MATED_SPREAD)
        best = scan(strangers, gallery, [], top_k=1).top_scores[:, 0]
        kappa = concentration_from_threshold(index.dim, n_subjects, float(np.quantile(best, 1 - FPIR)))
        return cls(gallery, index, np.concatenate([mated, strangers]), np.array([kappa, kappa / TEMPERATURE]), took)

    @property
    def place(self) -> Result:
        """What is measured here."""
        return {
            "subjects": len(self.gallery),
            "dim": self.index.dim,
            "lists": len(self.index.lists),
            "lists_read": self.index.n_probe,
            "sampled": len(self.index.sample),
            "concentration": float(self.sharpness[0]),
            "build_seconds": self.build_seconds,
        }


def speed(
    case: Case,
    *,
    batches: tuple[int, ...] = BATCHES,
    threads: tuple[int, ...] = THREADS,
    rounds: int = 9,
    seconds_each: float = 4.0,
    pause: float = PAUSE,
) -> list[Result]:
    """One row per batch, threads and system: its time, and how many times faster than the exact scan, round by round.

    Beside holue's two, where FAISS is installed: its own search of the same lists, for the top alone.
    """
    rng = np.random.default_rng(0)
    rows = []
    searched = _faiss_lists(case) if find_spec("faiss") is not None and len(case.gallery) <= LARGEST_COPY else None
    for n_probes in batches:
        probes = case.probes[rng.choice(len(case.probes), n_probes, replace=False)]
        for n_threads in threads:
            systems = _systems(case, searched, n_threads)
            timings = time_in_turn(
                {name: partial(system, probes) for name, system in systems.items()},
                rounds=rounds,
                seconds_each=seconds_each,
                pause=pause,
            )
            for name, timing in timings.items():
                faster = 1 / timing.ratio_to(timings["exact"])
                row = {"probes": n_probes, "threads": n_threads, "system": name, "times_faster": faster}
                rows.append(case.place | row | timing.summary())
    return rows


def accuracy(case: Case) -> Result:
    """How far log-mass, mean score, top and decision are from those of the exact scan, over all probes."""
    exact = scan(case.probes, case.gallery, case.sharpness, top_k=TOP_K)
    found = case.index.scan(case.probes, case.sharpness, top_k=TOP_K)
    tau = threshold_from_concentration(case.index.dim, len(case.gallery), float(case.sharpness[0]))
    half = len(case.probes) // 2
    result: Result = case.place | {
        "probes": len(case.probes),
        "threshold": tau,
        "decisions_identical": float((_decisions(exact, tau) == _decisions(found, tau)).mean()),
    }
    for name, rows in (("mated", slice(half)), ("strangers", slice(half, None))):
        same = exact.top_index[rows, 0] == found.top_index[rows, 0]
        result[name] = {"top_identical": float(same.mean())} | {
            label: _errors(exact, found, rows, column) for column, label in enumerate(("kappa", "kappa_over_t"))
        }
    return result


def growth(cases: list[list[Result]]) -> Drawing:
    """The time of one probe against the number of subjects, exact and approximate, from the rows of :func:`speed`."""
    caption = "Time per probe against the size of the gallery: exact, and approximate with its standard errors."
    with look("approximate"):
        figure, axes = new_figure(8, 3.6, columns=2)
        rows = [row for case in cases for row in case]
        for ax, n_probes in zip(axes, (1, 256)):
            for name, colour in (("exact", GREY), ("approximate", BLUE), ("FAISS, the top alone", ORANGE)):
                for n_threads, line in ((1, "-"), (2, "--")):
                    here = [r for r in rows if (r["probes"], r["threads"], r["system"]) == (n_probes, n_threads, name)]
                    if here:
                        x = [row["subjects"] for row in here]
                        y = [row["median_ms"] / n_probes for row in here]
                        low = [(row["median_ms"] - row["q1_ms"]) / n_probes for row in here]
                        high = [(row["q3_ms"] - row["median_ms"]) / n_probes for row in here]
                        label = name if n_threads == 1 else None
                        ax.errorbar(x, y, [low, high], color=colour, linestyle=line, marker="o", ms=4, label=label)
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xlabel("subjects")
            ax.set_title("one probe" if n_probes == 1 else f"{n_probes} probes at once")
        axes[0].set_ylabel("milliseconds per probe")
        axes[0].legend(title="dashed: two threads")
        return Drawing("approximate", caption, figure)


def bench_approximate(
    *,
    sizes: tuple[int, ...] = (100_000, 1_000_000),
    dim: int = 128,
    rounds: int = 9,
    n_probes: int = 2000,
    batches: tuple[int, ...] = BATCHES,
    threads: tuple[int, ...] = THREADS,
    pause: float = PAUSE,
    seed: int = 0,
) -> Result:
    """Speed and accuracy in the world of families at several sizes.

    >>> result = bench_approximate(sizes=(10_000,), dim=16, rounds=1, n_probes=40, batches=(1,), threads=(1,), pause=0.0)
    >>> sorted(result), result["accuracy"][0]["subjects"]
    (['accuracy', 'speed'], 10000)
    """
    rng = np.random.default_rng(seed)
    result: Result = {"speed": [], "accuracy": []}
    for n_subjects in sizes:
        draw = Families.found(rng, n_subjects, dim)
        case = Case.make(draw, rng, n_subjects, n_probes=n_probes, seed=seed)
        result["speed"].append(speed(case, batches=batches, threads=threads, rounds=rounds, pause=pause))
        result["accuracy"].append(accuracy(case))
    return result


def _systems(case: Case, searched: Any, threads: int) -> dict[str, Answer]:
    systems: dict[str, Answer] = {
        "exact": lambda probes: scan(probes, case.gallery, case.sharpness, top_k=TOP_K, threads=threads),
        "approximate": lambda probes: case.index.scan(probes, case.sharpness, top_k=TOP_K, threads=threads),
    }
    if searched is not None:
        import faiss

        def answer(probes: Float32Array) -> object:
            faiss.omp_set_num_threads(threads)
            return searched.search(probes, TOP_K)

        systems["FAISS, the top alone"] = answer
    return systems


def _faiss_lists(case: Case) -> Any:
    """FAISS IndexIVFFlat over the same lists, reading as many: the top five, and nothing of the rest."""
    import faiss

    quantizer = faiss.IndexFlatIP(case.index.dim)
    quantizer.add(case.index.lists.centres)
    index = faiss.IndexIVFFlat(quantizer, case.index.dim, len(case.index.lists), faiss.METRIC_INNER_PRODUCT)
    index.is_trained = True
    index.add(case.index.lists.vectors)
    index.nprobe = case.index.n_probe
    return index


def _decisions(evidence: Evidence, threshold: float) -> npt.NDArray[np.int64]:
    """The accepted subject, −1 for a rejection."""
    return np.where(evidence.top_scores[:, 0] >= threshold, evidence.top_index[:, 0], -1)


def _errors(exact: Evidence, found: Evidence, rows: slice, column: int) -> Result:
    assert found.precision is not None
    off = np.abs(found.log_mass - exact.log_mass)[rows, column]
    mean_off = np.abs(found.mean_score - exact.mean_score)[rows, column]
    error = found.precision.log_mass_error[rows, column]
    rounding = 1e-6 * found.sharpness[column] + 4e-6  # what two float32 scans may differ by
    return {
        "log_mass_off": dict(
            zip(("median", "q90", "q99", "largest"), np.quantile(off, [0.5, 0.9, 0.99, 1.0]).tolist())
        ),
        "mean_score_off": dict(zip(("median", "q99"), np.quantile(mean_off, [0.5, 0.99]).tolist())),
        "error": dict(zip(("median", "q99"), np.quantile(error, [0.5, 0.99]).tolist())),
        "covered": float((off <= 3 * error + rounding).mean()),
        "mean_covered": float((mean_off <= 3 * found.precision.mean_score_error[rows, column] + 2e-6).mean()),
    }
