"""Shard: the rows of some subjects in the versions that are asked for; it gives evidence of any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.cluster.shards.absent import Absent
from holue.cluster.shards.message import Message
from holue.cluster.shards.shard_file import ShardFile
from holue.evidence.evidence import Evidence
from holue.evidence.link import Link
from holue.gallery.embeddings import Embeddings, FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Numbers, Part, Segment, joined
from holue.recognition.search.prepared_segments import PreparedSegments
from holue.recognition.search.search import SearchKind
from holue.recognition.search.search_report import SearchReport

KEPT = 8
"""Versions that stay ready: those who ask may be a few changes apart."""
REWRITTEN_FROM, REWRITTEN_SHARE = 4096, 0.1
"""Rows, and share of all, that may be in memory alone before the file is written again."""


@dataclass
class _Step:
    """A step of which some pieces have come."""

    first: Message
    gone: list[Numbers]
    numbers: Numbers
    rows: FloatArray


class Shard:
    """Versions share their rows: each is a :class:`Gallery` whose segments are mapped from disk, and a few newer ones.

    A subject's id is its number here: names stay with those who ask. A version without anybody is None.
    """

    def __init__(self, file: ShardFile, threads: int = 1) -> None:
        self._file, self._threads = file, threads
        self._versions: dict[str, Gallery | None] = {}
        self._step: _Step | None = None
        self._unwritten = 0
        self._erased_at = 0  # versions before it still had somebody who is erased, and are refused
        self._prepared = PreparedSegments()
        self._changing = Lock()  # merging goes on in the background
        found = file.read()
        if found is not None:
            version, self._erased_at, segment = found
            self._versions[version] = _gallery(segment)

    @property
    def known(self) -> tuple[str, ...]:
        """The versions that are ready, the newest last."""
        return tuple(self._versions)

    def rows_held(self) -> int:
        """Subjects in the newest version."""
        newest = next(reversed(self._versions.values()), None)
        return 0 if newest is None else len(newest)

    def receive(self, message: Message) -> tuple[str, ...]:
        """Take a piece of a step; returns the versions that are ready."""
        if version_number(message.version) < self._erased_at:
            return self.known
        if message.version in self._versions and not message.erased:
            return self.known
        if message.base is not None and message.base not in self._versions:
            self._step = None
            return self.known
        step = self._step
        if message.place == 0 and (step is None or step.first.step != message.step):
            dim, dtype = message.rows.shape[1], message.rows.dtype
            buffer = self._file.staged(message.n_rows, dim, dtype)
            self._step = step = _Step(message, [], np.empty(message.n_rows, np.int64), buffer)
        if step is None or step.first.step != message.step:
            return self.known  # a piece of a step whose beginning was lost with an earlier process
        place = slice(message.place, message.place + len(message.numbers))
        step.gone.append(message.gone)
        step.numbers[place], step.rows[place] = message.numbers, message.rows
        if message.last:
            self._step = None
            self._take(step, erased=message.erased)
        return self.known

    def scan(
        self,
        version: str,
        kind: SearchKind,
        directions: FloatArray,
        sharpness: npt.ArrayLike,
        top_k: int,
        link: Link,
        decisive: float | None = None,
    ) -> Evidence | Absent:
        """Evidence of a version."""
        if version not in self._versions:
            return Absent(self.known)
        gallery = self._versions[version]
        if gallery is None:
            return Evidence.empty(len(directions), sharpness, top_k)
        search = self._prepared.search(kind, gallery, self._merge, decisive)
        return search.scan(directions, sharpness, top_k=top_k, link=link, decisive=decisive, threads=self._threads)

    def prepare(self, version: str, kind: SearchKind) -> bool:
        """Make codes or lists before the first question; whether the version is here."""
        gallery = self._versions.get(version)
        if gallery is not None:
            self._prepared.search(kind, gallery, self._merge)
        return version in self._versions

    def report(self, version: str, kind: SearchKind, threshold: float | None) -> SearchReport | Absent:
        """How a version is read at a threshold, as far as it is known without preparing anything."""
        if version not in self._versions:
            return Absent(self.known)
        gallery = self._versions[version]
        if gallery is None:
            return SearchReport(kind, kind, "nobody is enrolled here", 0, threshold)
        return self._prepared.report(kind, gallery, threshold)

    def rows(self, version: str, numbers: Numbers) -> FloatArray | Absent:
        """The exact directions of some numbers of this shard."""
        if version not in self._versions:
            return Absent(self.known)
        gallery = self._versions[version]
        assert gallery is not None, "numbers of an empty shard were asked for"
        return gallery.rows(numbers)

    def _take(self, step: _Step, *, erased: bool) -> None:
        version, base = step.first.version, step.first.base
        if erased:
            self._erased_at = version_number(version)
        if base is None:
            with self._changing:
                self._versions = {
                    version: _gallery(self._file.write(version, self._erased_at, step.numbers, step.rows))
                }
                self._unwritten = 0
            return
        with self._changing:
            earlier = self._versions[base]
            later = _changed(earlier, np.unique(np.concatenate(step.gone)), step.numbers, np.array(step.rows))
            self._unwritten += len(step.numbers)
            share = REWRITTEN_SHARE * (0 if later is None else len(later))
            if erased or self._unwritten > max(REWRITTEN_FROM, share):
                later = self._rewritten(version, later, step.rows)
            known = {} if erased else self._versions
            known = {name: gallery for name, gallery in known.items() if name != version}
            known[version] = later
            self._versions = dict(list(known.items())[-KEPT:])

    def _rewritten(self, version: str, gallery: Gallery | None, like: FloatArray) -> Gallery | None:
        if gallery is None:
            none = np.empty(0, np.int64)
            self._file.write(version, self._erased_at, none, np.empty((0, like.shape[1]), like.dtype))
            self._unwritten = 0
            return None
        whole = joined(gallery.parts)
        self._unwritten = 0
        return _gallery(self._file.write(version, self._erased_at, whole.numbers, whole.directions))

    def _merge(self, old: Sequence[Part], segment: Segment) -> bool:
        with self._changing:
            if not self._versions:
                return False
            version, gallery = next(reversed(self._versions.items()))
            if gallery is None:
                return False
            merged = gallery.merged(old, segment)
            self._versions[version] = merged
            return any(part.segment is segment for part in merged.parts)


def version_number(version: str) -> int:
    """The number in the name of a version.

    >>> version_number("17@1789000000.25")
    17
    """
    return int(version.partition("@")[0])


def _gallery(segment: Segment) -> Gallery | None:
    return Gallery.of(segment.subjects, segment.directions, numbers=segment.numbers) if len(segment) else None


def _changed(gallery: Gallery | None, gone: Numbers, numbers: Numbers, rows: FloatArray) -> Gallery | None:
    templates: Any = Embeddings(rows)
    if gallery is None:
        return _gallery(Segment(rows, numbers, numbers))
    later = gallery.exchanged(gone, numbers, numbers, templates) if len(numbers) else gallery.without(gone)
    return later if len(later) else None
