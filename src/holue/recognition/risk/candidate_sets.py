"""CandidateSets: for each probe the answers that remain possible, UNKNOWN among them where it does.

A set can be empty: no answer is as probable as the truth usually is. Putting the best answer in would cover more than was asked
for, and a higher level would no longer only add answers; so the set stays empty, and says so (``empty``, ``reasons``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.subjects import UNKNOWN, Subjects, as_labels
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.reading import Reading
from holue.recognition.search.search import Search

FIRST_TOP = 16
"""Candidates read at first; probes whose set may hold more are read again with eight times as many."""


@dataclass(frozen=True, eq=False)
class CandidateSets:
    """Sets for n probes: ``sets[i]`` is an object array, most probable subject first and UNKNOWN, if possible, last."""

    subjects: tuple[Subjects, ...]  # enrolled subjects of each set, most probable first
    probabilities: tuple[Float64Array, ...]  # theirs
    unknown: npt.NDArray[np.bool_]  # (n,) whether nobody enrolled is possible
    p_unknown: Float64Array  # (n,)
    confidence_level: float

    def __len__(self) -> int:
        return len(self.subjects)

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        members = self.subjects[row].tolist()
        return np.array([*members, UNKNOWN] if self.unknown[row] else members, dtype=object)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        size = self.size
        return (
            f"CandidateSets({len(self)} probes at {self.confidence_level:g}: mean size {size.mean():.2f}, "
            f"{np.mean(size == 1):.1%} of one answer, {np.mean(self.unknown):.1%} with UNKNOWN, "
            f"{np.mean(self.empty):.1%} empty)"
        )

    @property
    def size(self) -> npt.NDArray[np.int64]:
        """How many answers remain for each probe, UNKNOWN counted; 0 where the set is empty."""
        return np.array([len(members) for members in self.subjects], dtype=np.int64) + self.unknown

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Where no answer is as probable as the truth usually is: probes unlike those that the sets were calibrated on."""
        return np.asarray(self.size == 0)

    @property
    def reasons(self) -> list[str]:
        """One sentence for each empty set, "" for the others."""
        said = (
            f"no answer is as probable as the truth is for {self.confidence_level:.0%} of the development probes: this probe is "
            "unlike them; take another sample, or let a person decide"
        )
        return [said if empty else "" for empty in self.empty]

    def contain(self, y: object) -> npt.NDArray[np.bool_]:
        """Whether each set holds the truth ``y`` (a subject, or UNKNOWN)."""
        labels, unknown = as_labels(y, len(self))
        named = np.array([bool(np.any(members == label)) for members, label in zip(self.subjects, labels)], dtype=bool)
        return np.where(unknown, self.unknown, named)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON: the subjects with their probabilities, and whether unknown is possible."""
        sets = [
            {
                "subjects": members.tolist(),
                "probabilities": probabilities.tolist(),
                "unknown": bool(unknown),
                "p_unknown": float(p_unknown),
                "empty": reason != "",
                "reason": reason,
            }
            for members, probabilities, unknown, p_unknown, reason in zip(
                self.subjects, self.probabilities, self.unknown, self.p_unknown, self.reasons
            )
        ]
        return {"confidence_level": self.confidence_level, "sets": sets}


def candidate_sets(
    probes: Embeddings,
    search: Search,
    point: OperatingPoint,
    log_p_subject: float,
    log_p_unknown: float,
    confidence_level: float,
    threads: int | None = None,
) -> CandidateSets:
    """The subjects with ``log p ≥ log_p_subject``, and UNKNOWN where ``log p_0 ≥ log_p_unknown``.

    The gallery is streamed: at most ``1/p`` subjects can have probability p, and few have. Probes whose last candidate is
    still in the set are read again with more, up to the whole gallery; memory is probes × the largest set among them.
    """
    n, n_subjects = len(probes), len(search)
    nobody = search.names(np.empty(0, dtype=np.int64))
    subjects = [nobody] * n
    probabilities = [np.empty(0)] * n
    log_p0 = np.empty(n)
    # A cosine of the scan and one computed alone may round differently, by some steps of the narrower precision.
    slack = 8 * point.concentration * float(np.finfo(np.result_type(probes.directions, search.dtype)).eps)
    rows, top_k = np.arange(n), min(FIRST_TOP, n_subjects)
    while len(rows):
        # Temperature 1: the sets are made of the posterior that decides.
        reading = Reading.of(probes.take(rows), search, point, temperature=1.0, top_k=top_k, threads=threads)
        log_p = reading.posterior.log_p_top
        inside = log_p >= log_p_subject - slack
        more = inside[:, -1] & (top_k < n_subjects)
        log_p0[rows] = reading.posterior.log_p_unknown
        for i in np.flatnonzero(~more):
            members = inside[i]
            subjects[rows[i]] = search.names(reading.evidence.top_index[i, members])
            probabilities[rows[i]] = np.exp(log_p[i, members])
        rows, top_k = rows[more], min(8 * top_k, n_subjects)
    unknown = log_p0 >= log_p_unknown - slack
    return CandidateSets(tuple(subjects), tuple(probabilities), unknown, np.exp(log_p0), confidence_level)
