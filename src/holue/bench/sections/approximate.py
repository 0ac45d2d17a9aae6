"""Approximate benchmark: approximate evidence in turn with the exact scan of the same gallery, and how far it is off.

The concentration is the one that accepts 1 in 100 strangers: κ follows from the 99 % quantile of their best scores, as in
calibration.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.bench.measuring import PAUSE, lack_of_room, time_in_turn
from holue.bench.sections.section import Result, Step
from holue.bench.systems import Answer
from holue.bench.worlds.clusters import Draw, Families, enrol, mated_probes
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import TEMPERATURE, TOP_K, Float32Array
from holue.evidence.evidence import Evidence
from holue.evidence.ivf.index import ApproximateIndex
from holue.evidence.scan import scan
from holue.recognition.model.decision_equation import concentration_from_threshold, threshold_from_concentration

BATCHES, THREADS = (1, 16, 256), (1, 2)
MATED_COSINE, MATED_SPREAD = 0.85, 0.03
LOWEST_MATED_COSINE = 0.8
"""What the number of lists is chosen for: mated probes are to be found down to this cosine."""
FPIR = 0.01
LARGEST_COPY = 2_000_000
"""Subjects up to which FAISS gets a copy of its own."""
MAPPED_PROBES, MAPPED_ROUNDS = 1000, 5
"""For the gallery on disk."""


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
        path: Path | None = None,
        seed: int = 0,
    ) -> Case:
        """Enrol, build the index, draw the probes and set the concentration."""
        gallery = enrol(draw, rng, n_subjects, path)
        start = time.perf_counter()
        index = ApproximateIndex.build(gallery, mated_cosine=LOWEST_MATED_COSINE, seed=seed)
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


class _Cases:
    """The case of the moment: only one in memory, its gallery in a file if it is large."""

    def __init__(self) -> None:
        self.case: Case | None = None
        self.folder: tempfile.TemporaryDirectory[str] | None = None

    def enrol(self, n_subjects: int, sizes: Sizes, seed: int) -> None:
        self.close()
        rng = np.random.default_rng([seed, n_subjects])
        draw = Families.found(rng, n_subjects, sizes.approximate_dim)
        if n_subjects != sizes.approximate_mapped:
            self.case = Case.make(draw, rng, n_subjects, n_probes=sizes.approximate_probes, seed=seed)
            return
        # Deleted by close(); when a run is interrupted, by Python at its end.
        self.folder = tempfile.TemporaryDirectory()
        self.case = Case.make(
            draw,
            rng,
            n_subjects,
            n_probes=min(sizes.approximate_probes, MAPPED_PROBES),
            path=Path(self.folder.name) / "gallery.f32",
            seed=seed,
        )

    def close(self) -> None:
        self.case = None
        if self.folder is not None:
            self.folder.cleanup()
            self.folder = None


def approximate_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """The world of families at several sizes: enrolment and the index, speed, accuracy.

    >>> from dataclasses import replace
    >>> from holue.bench.worlds.sizes import QUICK
    >>> small = {"approximate_subjects": (10_000,), "approximate_dim": 16, "approximate_batches": (1,)}
    >>> result = {}
    >>> for note, measure in approximate_steps(result, replace(QUICK, threads=(1,), pause=0.0, **small), rounds=1, seed=0):
    ...     measure()
    >>> sorted(result["approximate"]), result["approximate"]["accuracy"][0]["subjects"]
    (['accuracy', 'speed'], 10000)
    """
    found: Result = {"speed": [], "accuracy": []}
    result["approximate"] = found
    cases = _Cases()

    def measure_speed(on_disk: bool) -> None:
        assert cases.case is not None
        batches = sizes.approximate_batches
        rows = speed(
            cases.case,
            batches=(batches[0], batches[-1]) if on_disk else batches,
            threads=sizes.threads,
            rounds=min(rounds, MAPPED_ROUNDS) if on_disk else rounds,
            seconds_each=(6 if on_disk else 4) * sizes.seconds_each,
            pause=sizes.pause,
        )
        found["speed"] += [row | {"on_disk": on_disk} for row in rows]

    def measure_accuracy() -> None:
        assert cases.case is not None
        found["accuracy"].append(accuracy(cases.case))
        cases.close()

    mapped = sizes.approximate_mapped
    lack = lack_of_room(4 * mapped * sizes.approximate_dim) if mapped > 0 else None
    if lack is not None:
        found["skipped"] = lack
    for n_subjects in (*sizes.approximate_subjects, *([mapped] if mapped > 0 and lack is None else [])):
        on_disk = n_subjects == mapped
        note = f"approximate: K = {n_subjects}"
        where = " on disk" if on_disk else ""
        yield f"{note}{where}, enrolled and indexed", partial(cases.enrol, n_subjects, sizes, seed)
        yield f"{note}, speed", partial(measure_speed, on_disk)
        yield f"{note}, accuracy", measure_accuracy


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
