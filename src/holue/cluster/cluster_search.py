"""ClusterSearch: the search of a gallery whose rows are on the nodes of a cluster; a ``Search`` like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.cluster.cluster import Cluster
from holue.cluster.feeding import VersionToServe
from holue.cluster.shards.packed import packed
from holue.cluster.shards.stripes import shard_of
from holue.errors import IncompleteSearchError
from holue.evidence.evidence import Evidence, merge
from holue.evidence.link import Link, cosine_link
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.segment import Numbers
from holue.gallery.subjects import Subjects
from holue.recognition.search.search import SearchKind
from holue.recognition.search.search_report import SearchReport

ROWS_PER_CALL = 4096
"""Rows that a shard is asked for in one call."""


class ClusterSearch:
    """One version of a gallery, read by its shards. Names are those of the version in this process.

    Evidence is merged in the order of the shards. In exact search it is that of one machine bit for bit. A shard that cannot be
    reached is left out of all scans of this object: then ``len`` counts those who were seen, and ``missing`` the others.
    """

    def __init__(self, cluster: Cluster, version: VersionToServe, kind: SearchKind) -> None:
        self._cluster, self._served, self._kind = cluster, version, kind
        self._left_out: set[int] = set()
        self._seen: int | None = None

    def __len__(self) -> int:
        return len(self._served.gallery) if self._seen is None else self._seen

    @property
    def missing(self) -> int:
        """Subjects that no scan has seen."""
        return len(self._served.gallery) - len(self)

    def missing_cosines(self, numbers: Numbers) -> Float64Array:
        """The highest cosine of some seen subjects with any that is missing, as the rows of this process say."""
        return self._cluster.lost_neighbours.of(
            self._served, frozenset(self._left_out), self._cluster.n_shards, numbers
        )

    @property
    def version(self) -> int:
        """Which version of the gallery."""
        return self._served.gallery.version

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """The precision of the rows."""
        return self._served.gallery.dtype

    def names(self, numbers: Numbers) -> Subjects:
        """The ids of some numbers; a negative one is nobody's."""
        return self._served.gallery.names(numbers)

    def index_of(self, ids: Subjects) -> Numbers:
        """The number of each id, −1 where it is not enrolled."""
        return self._served.gallery.index_of(ids)

    def rows(self, numbers: Numbers) -> FloatArray:
        """The exact directions of some numbers, copied."""
        found = np.empty((len(numbers), self._served.gallery.dim), dtype=self.dtype)
        for first in range(0, len(numbers), ROWS_PER_CALL):
            some = numbers[first : first + ROWS_PER_CALL]
            shards = shard_of(some, self._cluster.n_shards)
            questions = {int(shard): packed((self._served.name, some[shards == shard])) for shard in np.unique(shards)}
            answers = self._cluster.ask("rows", questions, self._served, work=len(some))
            if len(answers) < len(questions):
                raise self._unreachable(set(questions) - set(answers))
            for shard, rows in answers.items():
                found[first + np.flatnonzero(shards == shard)] = rows
        return found

    def blocks(self, size: int) -> Iterator[tuple[Numbers, FloatArray]]:
        """The numbers and exact directions of all subjects, at most ``size`` at a time."""
        numbers = self._served.gallery.numbers
        for first in range(0, len(numbers), size):
            some = numbers[first : first + size]
            yield some, self.rows(some)

    def scan(
        self,
        directions: FloatArray,
        sharpness: npt.ArrayLike,
        *,
        top_k: int,
        link: Link = cosine_link,
        decisive: float | None = None,
        threads: int | None = None,
    ) -> Evidence:
        """Evidence of the gallery about unit ``directions``; each shard reads with its own threads, whatever ``threads`` says."""
        sharpnesses = np.asarray(sharpness, np.float64)
        question = packed((self._served.name, self._kind, directions, sharpnesses, top_k, link, decisive))
        shards = [shard for shard in range(self._cluster.n_shards) if shard not in self._left_out]
        way = f"{self._kind} {getattr(link, '__name__', type(link).__name__)} {directions.dtype}"
        answers = self._cluster.ask("scan", dict.fromkeys(shards, question), self._served, len(directions), way)
        lost = set(shards) - set(answers)
        seen = sum(evidence.n_subjects for evidence in answers.values())
        if not seen or (lost and self._seen is not None):
            raise self._unreachable(lost)
        self._left_out |= lost
        self._seen = seen
        merged: Evidence = reduce(merge, (answers[shard] for shard in sorted(answers)))
        return merged

    def report(self, asked: SearchKind, threshold: float | None) -> SearchReport:
        """How the shards read: of their indexes, the one that reads the largest share of its lists."""
        gallery = self._served.gallery
        known = SearchReport(asked, self._kind, self._cluster.chosen(asked, gallery).reason, gallery.dim, threshold)
        if self._kind != "approximate":
            return known
        question = packed((self._served.name, self._kind, threshold))
        answers = self._cluster.ask("report", dict.fromkeys(range(self._cluster.n_shards), question), self._served, 0)
        indexed = [one for one in answers.values() if one.lists]
        if not indexed:
            return known
        worst = max(indexed, key=lambda one: one.lists_read / one.lists)
        return replace(known, lists=worst.lists, lists_read=worst.lists_read, missed=worst.missed)

    def _unreachable(self, shards: set[int]) -> IncompleteSearchError:
        which = ", ".join(map(str, sorted(shards)))
        return IncompleteSearchError(
            f"shards {which} of {self._cluster.n_shards} cannot be reached; see `holue cluster status`, and ask again"
        )
