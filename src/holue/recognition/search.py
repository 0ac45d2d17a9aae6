"""Search: the one way recognition reads a gallery, exactly, compressed or approximately."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.ivf.index import SMALLEST_GALLERY, ApproximateIndex
from holue.evidence.link import Link, cosine_link
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery.compressed import CompressedGallery, compress
from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.subjects import Subjects

SearchKind = Literal["exact", "float16", "int8", "approximate"]
SEARCHES: tuple[SearchKind, ...] = ("exact", "float16", "int8", "approximate")

Prepared = CompressedGallery | ApproximateIndex | None


@dataclass(frozen=True, eq=False)
class Search:
    """One version of a gallery, prepared to be searched in one way.

    ``exact`` reads every template; ``float16`` and ``int8`` read compressed ones and score the best again exactly, so that
    candidates and decisions stay those of the exact scan while probabilities have a certified bound; ``approximate`` reads
    some inverted lists and estimates the rest. A gallery too small for an index is read exactly.

    >>> search = Search.exact(Gallery.from_samples([[1.0, 0.0], [0.6, 0.8]], ["ann", "bob"]))
    >>> search.scan(np.array([[0.0, 1.0]]), [], top_k=1).top_index
    array([[1]])
    >>> search.subjects[1], search.rows(np.array([1]))
    ('bob', array([[0.6, 0.8]]))
    """

    kind: SearchKind
    gallery: Gallery
    prepared: Prepared = None

    @classmethod
    def exact(cls, gallery: Gallery | Search) -> Search:
        """The exact search of a gallery, which needs no preparation."""
        return cls("exact", gallery.gallery if isinstance(gallery, Search) else gallery)

    @classmethod
    def prepare(cls, kind: SearchKind, gallery: Gallery, earlier: Search | None = None) -> Search:
        """Prepare a gallery; what an earlier version of it has in common is not prepared again."""
        if kind not in SEARCHES:
            raise InvalidParameterError(f"search must be {' or '.join(map(repr, SEARCHES))}, got {kind!r}")
        if earlier is not None and earlier.kind == kind:
            if earlier.gallery is gallery:
                return earlier
            return cls(kind, gallery, _followed(earlier.prepared, gallery) or _prepared(kind, gallery))
        return cls(kind, gallery, _prepared(kind, gallery))

    def __len__(self) -> int:
        return len(self.gallery)

    @property
    def subjects(self) -> Subjects:
        """Who is at which row."""
        return self.gallery.subjects

    def rows(self, rows: npt.NDArray[np.int64]) -> FloatArray:
        """The exact directions of some rows, copied."""
        parts = self.gallery.parts
        found = np.empty((len(rows), self.gallery.dim), dtype=parts[0].dtype)
        start = 0
        for part in parts:
            here = (rows >= start) & (rows < start + len(part))
            found[here] = part[rows[here] - start]
            start += len(part)
        return found

    def blocks(self, size: int) -> Iterator[tuple[int, FloatArray]]:
        """The exact directions of all rows, at most ``size`` at a time, with the number of the first."""
        return self.gallery.blocks(size)

    def scan(
        self,
        directions: FloatArray,
        sharpness: npt.ArrayLike,
        *,
        top_k: int,
        link: Link = cosine_link,
        threads: int | None = None,
    ) -> Evidence:
        """Evidence of the gallery about unit ``directions``; any ``link`` but the cosine itself is read exactly."""
        if isinstance(self.prepared, ApproximateIndex) and link is cosine_link:
            narrow = directions.astype(np.float32, copy=False)
            evidence = self.prepared.scan(narrow, sharpness, top_k=top_k, threads=threads)
            if (evidence.top_index[:, : len(self.gallery)] != NO_SUBJECT).all():
                return evidence
            # The lists that were read hold fewer subjects than were asked for: read all.
        elif isinstance(self.prepared, CompressedGallery) and link is cosine_link:
            return scan_compressed(directions, self.prepared, sharpness, top_k=top_k, threads=threads)
        return scan(directions, self.gallery, sharpness, top_k=top_k, link=link, threads=threads)


def _prepared(kind: SearchKind, gallery: Gallery) -> Prepared:
    if kind == "approximate":
        return ApproximateIndex.build(gallery) if len(gallery) >= SMALLEST_GALLERY else None
    return None if kind == "exact" else compress(gallery, kind)


def _followed(prepared: Prepared, gallery: Gallery) -> Prepared:
    """The same for a later version, or None where it has to be made anew: subjects of an index were removed or replaced."""
    try:
        return None if prepared is None else prepared.follow(gallery)
    except InvalidInputError:
        return None
