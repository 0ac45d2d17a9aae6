"""Gallery: who is enrolled, as one direction per subject; each change makes a new version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from holue.errors import (
    GalleryTooSmallError,
    InvalidConcentrationError,
    InvalidEmbeddingsError,
    InvalidSubjectsError,
)
from holue.gallery.embeddings import Embeddings, Float64Array, FloatArray
from holue.gallery.pooling import pool
from holue.gallery.subjects import Subjects, as_subjects

SMALL_PART = 4096
"""Rows under which the last part is joined with newly enrolled rows, so that single enrolments stay few parts."""


@dataclass(frozen=True, eq=False)
class Gallery:
    """An immutable version of the enrolled subjects: row ``i`` of the directions belongs to ``subjects[i]``.

    The matrix is kept in parts, so that enrolling appends and never copies what is already there. Rows stay in the order of
    enrolment (sorted within one call), and a tie between scores goes to the earlier row.

    >>> gallery = Gallery.from_samples([[1.0, 0.0], [0.0, 1.0]], ["ann", "bob"])
    >>> gallery.enroll([[-1.0, 0.0]], ["eve"])
    Gallery(3 subjects, d=2, version 2)
    """

    subjects: Subjects
    parts: tuple[FloatArray, ...]
    concentrations: Float64Array | None = None
    version: int = 1

    @classmethod
    def from_samples(
        cls,
        X: object,
        y: object,
        concentration: object = None,
        *,
        media: object = None,
        weighting: str = "uniform",
    ) -> Self:
        """Samples pooled to one template per subject (see :func:`holue.gallery.pooling.pool`)."""
        if np.ndim(y) >= 1 and len(np.asarray(y)) == 0:  # type: ignore[arg-type]
            raise GalleryTooSmallError("the gallery is empty: enrol at least one subject")
        subjects, templates = pool(X, y, media=media, concentration=concentration, weighting=weighting, field="y")
        return cls(subjects, (templates.directions,), templates.concentrations)

    def __len__(self) -> int:
        return len(self.subjects)

    def __repr__(self) -> str:
        return f"Gallery({len(self)} subjects, d={self.dim}, version {self.version})"

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return int(self.parts[0].shape[1])

    @property
    def directions(self) -> FloatArray:
        """All directions (K, d) in one array: a copy where there are several parts."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)

    def blocks(self, size: int) -> Iterator[tuple[int, FloatArray]]:
        """Views of at most ``size`` rows with the index of their first row, in order."""
        start = 0
        for part in self.parts:
            for first in range(0, len(part), size):
                yield start + first, part[first : first + size]
            start += len(part)

    def index_of(self, ids: Subjects) -> npt.NDArray[np.int64]:
        """Row of each id, −1 where it is not enrolled; ids of another type than the gallery's are an error."""
        self.check_type(ids, field="y")
        order, ordered = self._sorted
        at = np.searchsorted(ordered, ids).clip(max=len(ordered) - 1)
        return np.where(ordered[at] == ids, order[at], -1)

    def check_type(self, ids: Subjects, *, field: str) -> None:
        """Refuse integers against strings: they would never match, and every probe would look unknown."""
        if ids.dtype.kind != self.subjects.dtype.kind:
            names = {"i": "integers", "U": "strings"}
            raise InvalidSubjectsError(
                f"{field} holds {names[ids.dtype.kind]} but the gallery's subjects are "
                f"{names[self.subjects.dtype.kind]}; convert one of them, for instance with .astype(str)"
            )

    def enroll(
        self,
        X: object,
        y: object,
        concentration: object = None,
        *,
        media: object = None,
        weighting: str = "uniform",
        replace: bool = False,
    ) -> Gallery:
        """A new version with these subjects added; with ``replace=True`` enrolled ones get the new template."""
        subjects, templates = pool(X, y, media=media, concentration=concentration, weighting=weighting, field="y")
        self._check_compatible(templates, subjects)
        row = self.index_of(subjects)
        known = row >= 0
        if known.any() and not replace:
            raise InvalidSubjectsError(
                f"subject {subjects[int(known.argmax())].item()!r} is enrolled already; pass replace=True to replace the "
                "template, or remove it first"
            )
        kept = self.remove(subjects[known], allow_empty=True) if known.any() else self
        return kept._append(subjects, templates, self.version + 1)

    def remove(self, subjects: object, *, allow_empty: bool = False) -> Gallery:
        """A new version without these subjects (one id or several)."""
        several = np.ndim(subjects) > 0  # type: ignore[arg-type]
        ids = as_subjects(subjects if several else [subjects], field="subject")
        if len(ids) == 0:
            raise InvalidSubjectsError("no subject was named; nothing was removed")
        row = self.index_of(ids)
        if (row < 0).any():
            raise InvalidSubjectsError(
                f"subject {ids[int((row < 0).argmax())].item()!r} is not enrolled; nothing was removed"
            )
        keep = np.ones(len(self), dtype=bool)
        keep[row] = False
        if not keep.any() and not allow_empty:
            raise GalleryTooSmallError("removing the last subject would leave an empty gallery; nothing was removed")
        parts = tuple(part[keep[start : start + len(part)]] for start, part in self._spans())
        kappa = self.concentrations
        return Gallery(
            self.subjects[keep],
            tuple(part for part in parts if len(part)) or (parts[0],),
            None if kappa is None else kappa[keep],
            self.version + 1,
        )

    def _append(self, subjects: Subjects, templates: Embeddings, version: int) -> Gallery:
        added = templates.directions.astype(self.parts[0].dtype, copy=False)
        if len(self.parts[-1]) < SMALL_PART:
            parts = (*self.parts[:-1], np.concatenate([self.parts[-1], added]))
        else:
            parts = (*self.parts, added)
        kappa = self.concentrations
        joined = None if kappa is None else np.concatenate([kappa, templates.concentrations])
        return Gallery(np.concatenate([self.subjects, subjects]), parts, joined, version)

    def _check_compatible(self, templates: Embeddings, subjects: Subjects) -> None:
        self.check_type(subjects, field="y")
        if templates.dim != self.dim:
            raise InvalidEmbeddingsError(
                f"X has {templates.dim} features, the gallery has {self.dim}: enrol with the same embedding model"
            )
        if (templates.concentrations is None) != (self.concentrations is None):
            has, new = ("has", "without") if self.concentrations is not None else ("has no", "with")
            raise InvalidConcentrationError(
                f"the gallery {has} concentrations and these subjects come {new} one; give them to all or to none"
            )

    def _spans(self) -> Iterator[tuple[int, FloatArray]]:
        start = 0
        for part in self.parts:
            yield start, part
            start += len(part)

    @cached_property
    def _sorted(self) -> tuple[npt.NDArray[np.int64], Subjects]:
        order = np.argsort(self.subjects, kind="stable")
        return order, self.subjects[order]
