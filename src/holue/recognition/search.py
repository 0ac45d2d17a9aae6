"""Search: how the enrolled gallery is read for probes, exactly, compressed or approximately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.ivf.index import SMALLEST_GALLERY, ApproximateIndex
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery.compressed import CompressedGallery, compress
from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery

if TYPE_CHECKING:
    from holue.recognition.recognizer import OpenSetRecognizer

SearchKind = Literal["exact", "float16", "int8", "approximate"]
SEARCHES: tuple[SearchKind, ...] = ("exact", "float16", "int8", "approximate")

Prepared = CompressedGallery | ApproximateIndex | None


@dataclass(frozen=True, eq=False)
class Search:
    """One version of a gallery, prepared to be searched in one way.

    ``exact`` reads every template; ``float16`` and ``int8`` read compressed ones and score the best again exactly, so that
    candidates and decisions stay those of the exact scan while probabilities have a certified bound; ``approximate`` reads
    some lists of neighbours and estimates the rest. A gallery too small for an index is read exactly.
    """

    kind: SearchKind
    gallery: Gallery
    prepared: Prepared = None

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

    def scan(
        self, directions: FloatArray, sharpness: npt.ArrayLike, *, top_k: int, threads: int | None = None
    ) -> Evidence:
        """Evidence of the gallery about unit ``directions``."""
        if isinstance(self.prepared, ApproximateIndex):
            narrow = directions.astype(np.float32, copy=False)
            evidence = self.prepared.scan(narrow, sharpness, top_k=top_k, threads=threads)
            if (evidence.top_index[:, : len(self.gallery)] != NO_SUBJECT).all():
                return evidence
            # The lists that were read hold fewer subjects than were asked for: read all.
            return scan(directions, self.gallery, sharpness, top_k=top_k, threads=threads)
        if isinstance(self.prepared, CompressedGallery):
            return scan_compressed(directions, self.prepared, sharpness, top_k=top_k, threads=threads)
        return scan(directions, self.gallery, sharpness, top_k=top_k, threads=threads)


def search_of(recognizer: OpenSetRecognizer, gallery: Gallery) -> Search:
    """The enrolled gallery's own search, prepared once per version and kept; any other gallery is read exactly."""
    if recognizer.search == "exact" or gallery is not recognizer.gallery_:
        return Search("exact", gallery)
    search = Search.prepare(recognizer.search, gallery, getattr(recognizer, "_search", None))
    recognizer._search = search
    return search


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
