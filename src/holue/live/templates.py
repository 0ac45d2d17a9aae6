"""Templates: samples of a store, pooled to one direction per subject.

The only place that makes galleries out of samples. Rows are in the order of subject numbers where a gallery is built whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.gallery.pooling import pool
from holue.gallery.row_sums import add_directions
from holue.gallery.subjects import Subjects, as_subjects
from holue.store.protocol import Store
from holue.store.values import NOBODY, Float32Array, Int64Array, Subject, SubjectId
from holue.store.view import View

SHORT = 1e-3
"""Mean length of a subject's directions below which they may cancel each other; pooling itself says whether they do."""


@dataclass(frozen=True, eq=False)
class Gathered:
    """Samples with the number of their subject; those of one medium count together."""

    owners: Int64Array  # (n,)
    rows: Float32Array  # (n, d)
    concentration: Float64Array | None  # (n,) None where a sample has none
    media: Int64Array | None  # (n,) None where every sample is a medium of its own

    def __len__(self) -> int:
        return len(self.owners)

    @classmethod
    def of(cls, owners: Int64Array, rows: Float32Array, kappa: Float64Array, media: Int64Array) -> Gathered:
        """Columns as they are kept: κ is NaN, and the medium −1, where none was given."""
        alone = media < 0
        if alone.all():
            shared = None
        else:
            shared = media.copy()
            shared[alone] = media.max() + 1 + np.arange(alone.sum())
        return cls(owners, rows, None if np.isnan(kappa).any() else kappa, shared)

    @classmethod
    def from_view(cls, view: View, chosen: Int64Array | None = None) -> Gathered:
        """All samples of a version, or those of the ``chosen`` subjects."""
        owners, rows, kappa, media = [], [np.empty((0, view.dim), np.float32)], [], []
        for segment, belongs in view:
            here = belongs != NOBODY if chosen is None else np.isin(belongs, chosen)
            whole = bool(here.all())
            owners.append(belongs[here])
            rows.append(segment.rows if whole else segment.rows[here])
            kappa.append(segment.concentration[here])
            medium = segment.medium[here].astype(np.int64)
            media.append(np.where(medium == view.no_medium, -1, medium))
        return cls.of(
            _joined(owners, np.int64), np.concatenate(rows), _joined(kappa, np.float64), _joined(media, np.int64)
        )

    @classmethod
    def empty(cls, dim: int) -> Gathered:
        """No samples."""
        return cls(np.empty(0, np.int64), np.empty((0, dim), np.float32), None, None)

    @classmethod
    def with_names(cls, view: View, chosen: set[int] | None = None) -> tuple[Gathered, dict[int, SubjectId]]:
        """The samples of a version, or of some subjects, and the ids of their subjects, in the order of their numbers.

        Whoever is erased meanwhile is left out: rows are overwritten only after the names are gone, so names are asked for last.
        """
        if chosen is None:
            gathered = cls.from_view(view)
            names = dict(view.names())
        else:
            there = [number for number, _ in view.names(sorted(chosen))]
            gathered = cls.from_view(view, np.array(there, np.int64)) if there else cls.empty(view.dim)
            names = dict(view.names(there)) if there else {}
        known = np.isin(gathered.owners, np.fromiter(names, np.int64, len(names)))
        kept = gathered if known.all() else gathered._take(known)
        owners = np.unique(kept.owners)
        return kept, names if len(owners) == len(names) else {number: names[number] for number in owners.tolist()}

    @classmethod
    def from_store(cls, store: Store, subjects: Sequence[Subject]) -> Gathered:
        """The samples that some subjects have now."""
        samples = [sample for subject in subjects for sample in store.samples(subject.id)]
        codes = {medium: code for code, medium in enumerate(dict.fromkeys(sample.medium for sample in samples))}
        codes[""] = -1
        return cls.of(
            np.array([sample.subject for sample in samples], np.int64),
            np.array([sample.embedding for sample in samples], np.float32).reshape(-1, store.dim),
            np.array([np.nan if s.concentration is None else s.concentration for s in samples], np.float64),
            np.array([codes[sample.medium] for sample in samples], np.int64),
        )

    def pooled(self, weighting: str) -> tuple[Int64Array, Embeddings]:
        """The numbers of the subjects, ascending, and one template for each; the samples are ``sound``."""
        numbers, templates = pool(self.rows, self.owners, **self.how(weighting))
        return numbers, templates

    def how(self, weighting: str) -> dict[str, Any]:
        """The arguments of pooling beside samples and subjects; concentrations only where they are weights."""
        weights = self.concentration if weighting == "concentration" else None
        return {"media": self.media, "concentration": weights, "weighting": weighting}

    def sound(self, weighting: str) -> Gathered:
        """The same samples; where those of a subject cancel each other, its first alone, so that every store can be opened."""
        if weighting == "concentration" and self.concentration is None:
            raise InvalidConcentrationError(
                "weighting='concentration' needs a concentration of every sample, and some were enrolled without one; open the "
                "gallery with weighting='uniform'"
            )
        first = np.unique(self.owners, return_index=True)[1]
        if len(first) == len(self.owners):
            return self
        keep = np.ones(len(self.owners), dtype=bool)
        for number in self._doubtful():
            own = self._take(self.owners == number)
            try:
                pool(own.rows, own.owners, **own.how(weighting))
            except InvalidEmbeddingsError:
                keep[np.flatnonzero(self.owners == number)[1:]] = False
        return self if keep.all() else self._take(keep)

    def _doubtful(self) -> Int64Array:
        """Subjects whose samples may cancel: their directions, summed, are short."""
        numbers, place = np.unique(self.owners, return_inverse=True)
        sums = np.zeros((len(numbers), self.rows.shape[1]), np.float32)
        add_directions(sums, place, self.rows, np.ones(len(place), np.float32))
        short: Int64Array = numbers[np.linalg.norm(sums, axis=1) < SHORT * np.bincount(place)]
        return short

    def _take(self, keep: npt.NDArray[np.bool_]) -> Gathered:
        kappa = None if self.concentration is None else self.concentration[keep]
        return Gathered(self.owners[keep], self.rows[keep], kappa, None if self.media is None else self.media[keep])


def built(view: View, weighting: str) -> Gallery | None:
    """The gallery of a version, under the store's numbers; None where nobody is enrolled."""
    gathered, names = Gathered.with_names(view)
    return changed(None, set(), names, gathered, weighting)


def changed(
    gallery: Gallery | None, concerned: set[int], coming: Mapping[int, SubjectId], gathered: Gathered, weighting: str
) -> Gallery | None:
    """The next gallery: of the numbers ``concerned`` those ``coming`` (with their ids) are pooled, the others are not there.

    Nobody else is touched.
    """
    gone = np.array(sorted(concerned), np.int64)
    if not coming:
        later = None if gallery is None else gallery.without(gone)
    else:
        numbers, templates = gathered.sound(weighting).pooled(weighting)
        ids = as_ids([coming[number] for number in numbers.tolist()])
        if gallery is None:
            return Gallery.of(ids, templates.directions, concentrations=templates.concentrations, numbers=numbers)
        later = gallery.exchanged(gone, numbers, ids, templates)
    return None if later is None or not len(later) else later


def check_weights(weighting: str, fields: Mapping[str, Any]) -> None:
    """Refuse samples without a concentration where concentrations are the weights."""
    if weighting == "concentration" and fields.get("concentration") is None:
        raise InvalidConcentrationError(
            "weighting='concentration' needs concentration, one per sample; pass it, or open with weighting='uniform'"
        )


def as_ids(ids: list[SubjectId]) -> Subjects:
    """Ids of a store, which are all strings or all integers, as an array, without looking at each one."""
    return as_subjects(np.array(ids))


def _joined(parts: list[Any], dtype: type) -> Any:
    return np.concatenate([np.empty(0, dtype), *parts])
