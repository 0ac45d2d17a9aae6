"""Binary benchmark: one or two bits per coordinate in turn with float32, int8 and FAISS's RaBitQ, on three kinds of galleries.

``uniform`` has no structure, ``faces`` the covariance of real templates (where the data is there), ``families`` look-alikes. The
threshold is where one in a hundred strangers is accepted; mated probes show somebody enrolled at a cosine from the threshold up.
One probe at a time is measured for mated probes and for strangers, since they need different numbers of exact rows; in batches
half of the probes are of each kind. FAISS searches its codes for as many subjects as it takes to make as many decisions right as
holue's bits do, and scores those again: the best subject alone, without any sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.bench.measuring import Timing, time_in_turn
from holue.bench.sections.section import Result, Row, Step
from holue.bench.systems import SHARPNESS, Answer, holue_evidence, missing
from holue.bench.worlds.clusters import Draw, Families, Mixture, enrol, mated_probes
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import TOP_K, Float32Array, random_directions
from holue.datasets.directory import data_directory
from holue.evidence.binary.scan import BinaryGallery, scan_binary
from holue.evidence.binary.shared_error import prepared_rows
from holue.evidence.evidence import Evidence
from holue.evidence.precision import EVERY_PLACE
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery.compressed import CompressedGallery, compress
from holue.gallery.embeddings import Float64Array, FloatArray

Rows = npt.NDArray[np.int64]

WORLDS = ("uniform", "faces", "families")
ACCEPTED_STRANGERS = 0.01
HIGHEST_COSINE = 0.3
"""Above the threshold: mates are seen at cosines between."""
RERANKED = (16, 64, 256, 1024)
"""Subjects that FAISS scores again: the first number with which it decides as well as holue."""
ONE_BY_ONE = 4
"""Probes that are asked one after another where the time of one is measured: they need different numbers of exact rows."""
ROUNDS = 5
FACES = "lfw/arcface_mbf.npz"


@dataclass(frozen=True, eq=False)
class Case:
    """A gallery in every form, and probes with their exact evidence."""

    gallery: Float32Array
    binary: BinaryGallery
    int8: CompressedGallery
    probes: Float32Array  # mated, then strangers
    exact: Evidence
    threshold: float

    @classmethod
    def of(cls, draw: Draw, n_subjects: int, n_probes: int, seed: int) -> Case:
        """Draw everybody, and find the threshold."""
        rng = np.random.default_rng(seed)
        gallery = enrol(draw, rng, n_subjects)
        strangers = draw(rng, n_probes // 2)
        best = scan(strangers, gallery, [], top_k=1).top_scores[:, 0]
        threshold = float(np.quantile(best, 1 - ACCEPTED_STRANGERS))
        middle = threshold + HIGHEST_COSINE / 2
        mated = mated_probes(gallery, rng, n_probes - len(strangers), middle, HIGHEST_COSINE / 4)
        probes = np.concatenate([mated, strangers])
        part = prepared_rows(gallery, np.arange(n_subjects))
        exact = scan(probes, gallery, SHARPNESS, top_k=TOP_K)
        return cls(gallery, BinaryGallery((part,)), compress(gallery, "int8"), probes, exact, threshold)

    @property
    def mated(self) -> int:
        """How many of the probes are mated."""
        return len(self.probes) - len(self.probes) // 2

    def asked(self, kind: str, n: int) -> Float32Array:
        """As many probes: mated, strangers, or both."""
        mated, strangers = self.probes[: self.mated], self.probes[self.mated :]
        if kind == "both":
            return np.concatenate([mated[: -(-n // 2)], strangers[: n // 2]])
        return (mated if kind == "mated" else strangers)[:n]

    def same_decisions(self, best: Rows, scores: FloatArray) -> float:
        """The share of probes with the exact scan's decision: who is accepted, or that nobody is."""
        accepted = self.exact.top_scores[:, 0] >= self.threshold
        same = (scores >= self.threshold) == accepted
        return float((same & (~accepted | (best == self.exact.top_index[:, 0]))).mean())


def draw_of(world: str, n_subjects: int, dim: int, seed: int) -> Draw | None:
    """How subjects of a world are drawn; None where the data for it is missing."""
    rng = np.random.default_rng(seed)
    if world == "uniform":
        return lambda own, n: random_directions(own, n, dim)
    if world == "families":
        return Families.found(rng, n_subjects, dim)
    path = data_directory() / FACES
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        embeddings, people = file["embeddings"].astype(np.float64), file["subject_id"]
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    _, index = np.unique(people, return_inverse=True)
    templates = np.zeros((index.max() + 1, embeddings.shape[1]))
    np.add.at(templates, index, embeddings)
    return Mixture.fit(templates / np.linalg.norm(templates, axis=1, keepdims=True), dim)


def binary_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One step per gallery: what the evidence is worth, and the times of every batch.

    >>> from dataclasses import replace
    >>> from holue.bench.worlds.sizes import QUICK
    >>> sizes = replace(QUICK, binary_shapes=((2000, 32),), binary_batches=(1,), binary_probes=40, threads=(1,), pause=0.0)
    >>> result = {}
    >>> for note, measure in binary_steps(result, sizes, rounds=1, seed=0):
    ...     if "faces" not in note:
    ...         measure()
    >>> sorted(result["binary"]), sorted({row["world"] for row in result["binary"]["accuracy"]})
    (['accuracy', 'speed'], ['families', 'uniform'])
    """
    result["binary"] = {"accuracy": [], "speed": []}

    def measure(world: str, shape: tuple[int, int]) -> None:
        draw = draw_of(world, *shape, seed)
        if draw is None:
            return
        case = Case.of(draw, shape[0], sizes.binary_probes, seed)
        place = {"world": world, "subjects": shape[0], "dim": shape[1]}
        index = None if missing("faiss") is not None else _rabitq_index(case.gallery)
        worth = accuracy(case, index)
        result["binary"]["accuracy"].append(place | worth)
        for threads in sizes.threads:
            systems = _systems(case, index, worth.get("faiss_reranked", 0), threads)
            for kind, n_probes in _questions(sizes.binary_batches):
                own = place | {"probes": n_probes, "who": kind, "threads": threads}
                rows = _timed(
                    systems, case.asked(kind, max(n_probes, ONE_BY_ONE)), n_probes, min(rounds, ROUNDS), sizes
                )
                result["binary"]["speed"] += [own | row for row in rows]

    for shape in sizes.binary_shapes:
        for world in WORLDS:
            yield f"binary: {world}, K = {shape[0]}, d = {shape[1]}", partial(measure, world, shape)


def _questions(batches: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    for n_probes in batches:
        yield from (("mated", 1), ("strangers", 1)) if n_probes == 1 else (("both", n_probes),)


def _timed(systems: dict[str, Answer], probes: Float32Array, together: int, rounds: int, sizes: Sizes) -> list[Row]:
    """A row per system, with the time of one question of so many probes."""
    groups = [probes[first : first + together] for first in range(0, len(probes), together)]

    def ask(answer: Answer) -> None:
        for group in groups:
            answer(group)

    calls = {name: partial(ask, answer) for name, answer in systems.items()}
    timings = time_in_turn(calls, rounds=rounds, seconds_each=2 * sizes.seconds_each, pause=sizes.pause)
    each = {name: Timing(timing.seconds / len(groups)) for name, timing in timings.items()}
    return [
        {"system": name} | timing.summary() | {"times_faster": 1 / timing.ratio_to(each["holue"])}
        for name, timing in each.items()
    ]


def _systems(case: Case, index: Any, reranked: int, threads: int) -> dict[str, Answer]:
    answers: dict[str, Answer] = {
        "holue": holue_evidence(case.gallery, 1, threads),
        "holue int8": lambda probes: scan_compressed(probes, case.int8, SHARPNESS, top_k=TOP_K, threads=threads),
        "holue binary": lambda probes: scan_binary(
            probes, case.binary, SHARPNESS, top_k=TOP_K, decisive=case.threshold, threads=threads
        ),
    }
    if index is not None:
        answers["faiss rabitq"] = lambda probes: faiss_best(index, case.gallery, probes, reranked, threads)
    return answers


def _rabitq_index(gallery: Float32Array) -> Any:
    import faiss

    index = faiss.IndexRaBitQFastScan(gallery.shape[1], faiss.METRIC_INNER_PRODUCT)
    index.train(gallery)
    index.add(gallery)
    return index


def faiss_best(
    index: Any, gallery: Float32Array, probes: Float32Array, reranked: int, threads: int
) -> tuple[Rows, Float64Array]:
    """FAISS IndexRaBitQFastScan: the best of so many, scored again from the exact rows, and its score."""
    import faiss

    faiss.omp_set_num_threads(threads)
    found = index.search(probes, reranked)[1]
    scores = np.matmul(gallery[found], probes[:, :, None])[:, :, 0]
    best = scores.argmax(axis=1)
    row = np.arange(len(probes))
    return found[row, best], scores[row, best].astype(np.float64)


def equal_recall(case: Case, index: Any, wanted: float) -> tuple[int, float]:
    """How many FAISS scores again to decide as well as holue does, and how well it then does."""
    for reranked in RERANKED:
        found = [
            faiss_best(index, case.gallery, case.probes[first : first + 64], reranked, 2)
            for first in range(0, len(case.probes), 64)
        ]
        best, scores = (np.concatenate(part) for part in zip(*found))
        same = case.same_decisions(best, scores)
        if same >= wanted:
            break
    return reranked, same


def accuracy(case: Case, index: Any = None) -> Row:
    """How many decisions are those of the exact scan, and how many sums are within three standard errors."""
    seen = scan_binary(case.probes, case.binary, SHARPNESS, top_k=TOP_K, decisive=case.threshold)
    exact, precision, half = case.exact, seen.precision, case.mated
    assert precision is not None
    row: Row = {
        "probes": len(case.probes),
        "threshold": case.threshold,
        "bits": case.binary.parts[0].planes,
        "one_bit_share": case.binary.parts[0].one_bit_share,
        "same_decisions": case.same_decisions(seen.top_index[:, 0], seen.top_scores[:, 0]),
        "same_top": float((seen.top_index == exact.top_index).all(axis=1).mean()),
        "scanned_exactly": float((precision.top_from == EVERY_PLACE).mean()),
        "float32_mb": case.gallery.nbytes / 1e6,
        "int8_mb": case.int8.nbytes / 1e6,
        "binary_mb": case.binary.nbytes / 1e6,
    }
    for kind, rows in (("mated", slice(0, half)), ("strangers", slice(half, None))):
        off = np.abs(seen.log_mass - exact.log_mass)[rows]
        mean_off = np.abs(seen.mean_score - exact.mean_score)[rows]
        row[f"within_{kind}"] = (off <= 3 * precision.log_mass_error[rows] + 1e-6).mean(axis=0).tolist()
        row[f"mean_within_{kind}"] = (mean_off <= 3 * precision.mean_score_error[rows] + 1e-6).mean(axis=0).tolist()
        row[f"error_{kind}"] = np.median(off, axis=0).tolist()
    if index is not None:
        row["faiss_reranked"], row["faiss_same_decisions"] = equal_recall(case, index, row["same_decisions"])
        row["faiss_mb"] = index.code_size * len(case.gallery) / 1e6
    return row
