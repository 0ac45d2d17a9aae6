"""GallerySearch: the search of a gallery in this process, exactly or by the prepared forms of its segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidParameterError
from holue.evidence.binary.part import BinaryPart
from holue.evidence.binary.scan import BinaryGallery, scan_binary
from holue.evidence.binary.shared_error import binary_segment
from holue.evidence.block import block_of
from holue.evidence.evidence import NO_SUBJECT, Evidence, merge
from holue.evidence.ivf.index import SMALLEST_GALLERY, ApproximateIndex
from holue.evidence.link import Link, cosine_link
from holue.evidence.quantized.scan import scan_compressed, scan_in_float64
from holue.evidence.scan import scan
from holue.gallery.compressed import CompressedGallery, CompressedPart, compress_segment
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Numbers, Part, Segment
from holue.gallery.subjects import Subjects
from holue.recognition.search.choice import Choice, chosen
from holue.recognition.search.search import SEARCHES, SearchKind
from holue.recognition.search.search_report import SearchReport

COMPRESSED_FROM = 4096
"""Rows from which a segment is compressed, unless it is the only one; smaller ones are read exactly until they are merged."""

Prepared = CompressedPart | BinaryPart | ApproximateIndex
"""What is made of a segment once: its codes, or its lists."""


@dataclass(frozen=True, eq=False)
class GallerySearch:
    """One version of a gallery, read in one way.

    ``exact`` reads every template; ``float16`` and ``int8`` read compressed ones and score the best again exactly, so that
    candidates and decisions stay those of the exact scan while probabilities have a certified bound; ``binary`` reads one bit per
    coordinate, and decides as the exact scan with a stated probability (``evidence/binary/scan.py``); ``approximate`` reads
    some inverted lists and estimates the rest. Segments without a prepared form, above all small ones, are read exactly, and the
    evidences are merged.

    >>> search = GallerySearch.exact(Gallery.from_samples([[1.0, 0.0], [0.6, 0.8]], ["ann", "bob"]))
    >>> search.scan(np.array([[0.0, 1.0]]), [], top_k=1).top_index
    array([[1]])
    >>> search.names(np.array([1])), search.rows(np.array([1]))
    (array(['bob'], dtype='<U3'), array([[0.6, 0.8]]))
    """

    kind: SearchKind
    gallery: Gallery
    prepared: tuple[Prepared | None, ...]  # of each part of the gallery, as this version has it
    threshold: float | None = None  # of the decisions; lists are read for it where a scan names none

    @classmethod
    def exact(cls, gallery: Gallery) -> GallerySearch:
        """The exact search of a gallery, which needs no preparation."""
        return cls("exact", gallery, (None,) * len(gallery.parts))

    @classmethod
    def prepare(cls, kind: SearchKind, gallery: Gallery) -> GallerySearch:
        """Prepare every segment that is worth it."""
        kind = chosen(kind, gallery).kind
        made = (
            prepare_segment(kind, part.segment) if is_worth(kind, part, gallery) else None for part in gallery.parts
        )
        return cls(kind, gallery, tuple(as_of(form, part) for form, part in zip(made, gallery.parts)))

    def __len__(self) -> int:
        return len(self.gallery)

    @property
    def version(self) -> int:
        """Which version of the gallery."""
        return self.gallery.version

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """The precision of the rows."""
        return self.gallery.dtype

    @property
    def missing(self) -> int:
        """Nobody: all rows are here."""
        return 0

    def missing_cosines(self, numbers: Numbers) -> Float64Array:
        """Nobody is missing."""
        return np.full(len(numbers), -1.0)

    def report(self, choice: Choice, asked: SearchKind, threshold: float | None) -> SearchReport:
        """How it reads at a threshold: of the indexes, the one that reads the largest share of its lists."""
        known = SearchReport(asked, self.kind, choice.reason, self.gallery.dim, threshold)
        bits = [form for form in self.prepared if isinstance(form, BinaryPart)]
        if bits:
            largest = max(bits, key=len)
            return replace(known, bits=largest.planes, one_bit_share=largest.one_bit_share)
        indexes = [form for form in self.prepared if isinstance(form, ApproximateIndex)]
        if not indexes:
            return known
        worst = max(indexes, key=lambda index: index.lists_read(threshold)[0] / len(index.lists))
        read, missed = worst.lists_read(threshold)
        share = None if threshold is None else missed
        return replace(known, lists=len(worst.lists), lists_read=read, missed=share)

    def names(self, numbers: Numbers) -> Subjects:
        """The ids of some numbers; a negative one is nobody's."""
        return self.gallery.names(numbers)

    def index_of(self, ids: Subjects) -> Numbers:
        """The number of each id, −1 where it is not enrolled."""
        return self.gallery.index_of(ids)

    def rows(self, numbers: Numbers) -> FloatArray:
        """The exact directions of some numbers, copied."""
        return self.gallery.rows(numbers)

    def blocks(self, size: int) -> Iterator[tuple[Numbers, FloatArray]]:
        """The numbers and exact directions of all subjects, at most ``size`` at a time."""
        return self.gallery.blocks(size)

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
        """Evidence of the gallery about unit ``directions``; any ``link`` but the cosine itself is read exactly.

        ``decisive`` is the threshold of the decision, where one is made: below it a binary search promises no order.
        """
        how: dict[str, Any] = {"top_k": top_k, "threads": threads}
        pairs = list(zip(self.gallery.parts, self.prepared))
        unprepared = [block_of(part) for part, form in pairs if form is None]
        if self.kind == "exact" or link is not cosine_link:
            return scan(directions, self.gallery, sharpness, link=link, **how)
        if self.kind == "approximate":
            narrow = directions.astype(np.float32, copy=False)
            indexes = [form for _, form in pairs if isinstance(form, ApproximateIndex)]
            at = self.threshold if decisive is None else decisive
            seen = [index.scan(narrow, sharpness, decisive=at, **how) for index in indexes]
            if unprepared:
                seen.append(scan(narrow, unprepared, sharpness, **how))
            evidence = reduce(merge, seen)
            if (evidence.top_index[:, : len(self)] != NO_SUBJECT).all():
                return evidence
            # The lists that were read hold fewer subjects than were asked for: read all.
            return scan(directions, self.gallery, sharpness, **how)
        seen = []
        if self.kind == "binary":
            if bits := tuple(form for _, form in pairs if isinstance(form, BinaryPart)):
                seen.append(scan_binary(directions, BinaryGallery(bits), sharpness, decisive=decisive, **how))
            if unprepared:
                seen.append(scan(directions, unprepared, sharpness, **how))
            return reduce(merge, seen)
        assert self.kind != "auto", "a search has one of the ways there are"
        if codes := tuple(form for _, form in pairs if isinstance(form, CompressedPart)):
            seen.append(scan_compressed(directions, CompressedGallery(self.kind, codes), sharpness, **how))
        # Bounds of float64 are worth their time where the rows are few; the rounding of float32 counts as exact (see Precision).
        few = [block for block in unprepared if len(block.rows) < COMPRESSED_FROM]
        many = [block for block in unprepared if len(block.rows) >= COMPRESSED_FROM]
        if few:
            seen.append(scan_in_float64(directions, few, sharpness, **how))
        if many:
            seen.append(scan(directions, many, sharpness, **how))
        return reduce(merge, seen)


def check_kind(kind: SearchKind) -> None:
    """An error that names the kinds there are, unless this is one."""
    if kind not in ("auto", *SEARCHES):
        raise InvalidParameterError(f"search must be {' or '.join(map(repr, ('auto', *SEARCHES)))}, got {kind!r}")


def is_worth(kind: SearchKind, part: Part, gallery: Gallery) -> bool:
    """Whether a segment is to be prepared, or read exactly."""
    if kind == "approximate":
        return len(part.segment) >= SMALLEST_GALLERY
    return kind != "exact" and (len(part.segment) >= COMPRESSED_FROM or len(gallery.parts) == 1)


def prepare_segment(kind: SearchKind, segment: Segment) -> Prepared:
    """The codes or the lists of a segment: all of its rows, whoever has left."""
    if kind == "approximate":
        return ApproximateIndex.build(segment)
    if kind == "binary":
        return binary_segment(segment)
    assert kind != "exact"
    assert kind != "auto"
    return compress_segment(segment, kind)


def as_of(form: Prepared | None, part: Part) -> Prepared | None:
    """A segment's prepared form as one version of the gallery has it."""
    if isinstance(form, ApproximateIndex):
        return form.of(part.gone)
    return None if form is None else form.of(part)
