"""Binary benchmark: one bit per coordinate in turn with float32, int8 and FAISS's RaBitQ, on three kinds of galleries.

``uniform`` has no structure, ``faces`` the covariance of real templates (where the data is there), ``families`` look-alikes. The
threshold is where one in a hundred strangers is accepted; half of the probes show somebody enrolled at a cosine from the
threshold up. FAISS searches its codes for ``RERANKED`` subjects and scores those again: the best subject alone, without any sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from holue.bench.measuring import Timing, time_in_turn
from holue.bench.sections.section import Result, Row, Step
from holue.bench.systems import SHARPNESS, Answer, holue_evidence, missing
from holue.bench.worlds.clusters import Draw, Families, Mixture, enrol, mated_probes
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import TOP_K, Float32Array, random_directions
from holue.datasets.directory import data_directory
from holue.evidence.binary.part import BinaryPart
from holue.evidence.binary.scan import BinaryGallery, scan_binary
from holue.evidence.binary.shared_error import learned
from holue.evidence.evidence import Evidence
from holue.evidence.precision import EVERY_PLACE
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery.compressed import CompressedGallery, compress

WORLDS = ("uniform", "faces", "families")
ACCEPTED_STRANGERS = 0.01
HIGHEST_COSINE = 0.3
"""Above the threshold: mates are seen at cosines between."""
RERANKED = 64
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
        part = learned(BinaryPart.of_rows(gallery, np.arange(n_subjects)))
        exact = scan(probes, gallery, SHARPNESS, top_k=TOP_K)
        return cls(gallery, BinaryGallery((part,)), compress(gallery, "int8"), probes, exact, threshold)

    def some(self, n: int) -> Float32Array:
        """As many probes, from both ends: mated and strangers."""
        half = -(-n // 2)
        return np.ascontiguousarray(np.concatenate([self.probes[:half], self.probes[len(self.probes) - (n - half) :]]))


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
        result["binary"]["accuracy"].append(place | accuracy(case))
        for n_probes in sizes.binary_batches:
            probes = case.some(n_probes)
            for threads in sizes.threads:
                calls = {name: partial(answer, probes) for name, answer in _systems(case, n_probes, threads).items()}
                timings = time_in_turn(calls, rounds=rounds, seconds_each=4 * sizes.seconds_each, pause=sizes.pause)
                own = place | {"probes": n_probes, "threads": threads}
                result["binary"]["speed"] += [own | row for row in _rows(timings, case)]

    for shape in sizes.binary_shapes:
        for world in WORLDS:
            yield f"binary: {world}, K = {shape[0]}, d = {shape[1]}", partial(measure, world, shape)


def _systems(case: Case, n_probes: int, threads: int) -> dict[str, Answer]:
    answers: dict[str, Answer] = {
        "holue": holue_evidence(case.gallery, n_probes, threads),
        "holue int8": lambda probes: scan_compressed(probes, case.int8, SHARPNESS, top_k=TOP_K, threads=threads),
        "holue binary": lambda probes: scan_binary(
            probes, case.binary, SHARPNESS, top_k=TOP_K, decisive=case.threshold, threads=threads
        ),
    }
    if missing("faiss") is None:
        answers["faiss rabitq"] = faiss_rabitq(case.gallery, threads)
    return answers


def faiss_rabitq(gallery: Float32Array, threads: int) -> Answer:
    """FAISS IndexRaBitQFastScan: the best of so many, scored again from the exact rows."""
    import faiss

    index = faiss.IndexRaBitQFastScan(gallery.shape[1], faiss.METRIC_INNER_PRODUCT)
    index.train(gallery)
    index.add(gallery)

    def answer(probes: Float32Array) -> object:
        faiss.omp_set_num_threads(threads)
        found = index.search(probes, RERANKED)[1]
        scores = np.einsum("ijk,ik->ij", gallery[found], probes)
        return found[np.arange(len(probes)), scores.argmax(axis=1)]

    return answer


def accuracy(case: Case) -> Row:
    """How many decisions are those of the exact scan, and how many sums are within three standard errors."""
    seen = scan_binary(case.probes, case.binary, SHARPNESS, top_k=TOP_K, decisive=case.threshold)
    exact, precision = case.exact, seen.precision
    assert precision is not None
    half = len(case.probes) - len(case.probes) // 2
    accepted = exact.top_scores[:, 0] >= case.threshold
    same = (seen.top_scores[:, 0] >= case.threshold) == accepted
    same &= ~accepted | (seen.top_index[:, 0] == exact.top_index[:, 0])
    row: Row = {
        "probes": len(case.probes),
        "threshold": case.threshold,
        "same_decisions": float(same.mean()),
        "same_top": float((seen.top_index == exact.top_index).all(axis=1).mean()),
        "scanned_exactly": float((precision.top_from == EVERY_PLACE).mean()),
        "gallery_mb": case.binary.nbytes / 1e6,
        "bytes_ratio": case.gallery.nbytes / case.binary.nbytes,
    }
    for kind, rows in (("mated", slice(0, half)), ("strangers", slice(half, None))):
        off = np.abs(seen.log_mass - exact.log_mass)[rows]
        mean_off = np.abs(seen.mean_score - exact.mean_score)[rows]
        row[f"within_{kind}"] = (off <= 3 * precision.log_mass_error[rows] + 1e-6).mean(axis=0).tolist()
        row[f"mean_within_{kind}"] = (mean_off <= 3 * precision.mean_score_error[rows] + 1e-6).mean(axis=0).tolist()
        row[f"error_{kind}"] = np.median(off, axis=0).tolist()
    if missing("faiss") is None:
        found = np.asarray(faiss_rabitq(case.gallery, 1)(case.probes))
        row["faiss_same_best"] = float((found == exact.top_index[:, 0])[accepted].mean()) if accepted.any() else 1.0
    return row


def _rows(timings: dict[str, Timing], case: Case) -> list[Row]:
    return [
        {"system": name} | timing.summary() | {"times_faster": 1 / timing.ratio_to(timings["holue"])}
        for name, timing in timings.items()
    ]
