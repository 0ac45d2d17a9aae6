"""LeftOut: the samples of a gallery, each compared with its own subject's template as it would be without that sample.

No template is pooled twice. With the weighted sum ``S_c`` of a subject's samples and the share ``M_m`` of one medium in it,

    own score of sample i in medium m of subject c  =  x_i · (S_c − M_m) / ‖S_c − M_m‖

A medium is left out as a whole: a frame next to the one that was left out would make the task trivial.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from holue.errors import GalleryTooSmallError, InvalidConcentrationError, InvalidParameterError
from holue.gallery.embeddings import Embeddings, Float64Array, FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.subjects import as_subjects

ROWS_COMPARED_AT_ONCE = 8192
CANCELLED = 1e-6
"""A sum shorter than this is rounding only: it has no direction."""

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Samples, the gallery of all of them, and the score of each to its own subject without it.

    >>> left = LeftOut.of([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], ["ann", "ann", "bob"])
    >>> left.own_score.round(6).tolist(), left.paired.tolist()
    ([0.6, 0.6, -inf], [True, True, False])
    """

    samples: Embeddings
    gallery: Gallery
    row: Rows  # (n,) number of the subject of each sample, which is its row in the gallery
    own_score: Float64Array  # (n,) −inf where the subject has no other medium
    length: Float64Array  # (subjects,) of the sums that the templates are the directions of
    weight: Float64Array  # (n,) what each sample counts in them
    medium: Rows  # (n,) which samples leave together: those of a subject in one medium

    @classmethod
    def of(
        cls,
        X: object,
        y: object,
        concentration: object = None,
        *,
        media: object = None,
        weighting: str = "uniform",
        kept: Mask | None = None,
    ) -> LeftOut:
        """Pool as :func:`holue.gallery.pooling.pool` does; samples outside ``kept`` are compared but count in no template."""
        samples = Embeddings.from_samples(X, concentration)
        subject = as_subjects(y, len(samples))
        if len(samples) == 0:
            raise GalleryTooSmallError("the gallery is empty: enrol at least one subject")
        keys, row = np.unique(subject, return_inverse=True)
        n, n_subjects = len(samples), len(keys)
        medium = (
            np.arange(n) if media is None else np.unique(as_subjects(media, n, field="media"), return_inverse=True)[1]
        )
        # The same medium may show several subjects: pairs are what is left out.
        pairs, pair = np.unique(row.astype(np.int64) * (int(medium.max()) + 1) + medium, return_inverse=True)
        pair_row = pairs // (int(medium.max()) + 1)
        counted = np.ones(n, dtype=bool) if kept is None else _kept(kept, row, n_subjects)
        weight = np.where(counted, _weights(samples, weighting), 0.0)
        weight /= np.maximum(np.bincount(pair, counted), 1)[pair]
        sums = summed(samples, row, weight, n_subjects)
        # With one sample per medium the medium's share is the sample itself, and no second matrix is needed.
        shares = None if len(pairs) == n else summed(samples, pair, weight, len(pairs))
        media_of_pair = np.bincount(pair, counted, minlength=len(pairs)) > 0
        others = np.bincount(pair_row, media_of_pair, minlength=n_subjects)[row] - media_of_pair[pair]
        own = np.full(n, -np.inf)
        for first in range(0, n, ROWS_COMPARED_AT_ONCE):
            part = slice(first, first + ROWS_COMPARED_AT_ONCE)
            x = samples.directions[part].astype(np.float64)
            left = sums[row[part]] - (x * weight[part, None] if shares is None else shares[pair[part]])
            length = np.linalg.norm(left, axis=1)
            score = np.einsum("ij,ij->i", x, left) / np.maximum(length, CANCELLED)
            own[part] = np.where((others[part] > 0) & (length > CANCELLED), np.clip(score, -1.0, 1.0), -np.inf)
        length = np.maximum(np.linalg.norm(sums, axis=1), CANCELLED)
        directions = (sums / length[:, None]).astype(samples.directions.dtype)
        return cls(
            samples, Gallery.of(keys, directions), row.astype(np.int64), own, length, weight, pair.astype(np.int64)
        )

    def __len__(self) -> int:
        return len(self.samples)

    def templates_without(self, chosen: Rows) -> FloatArray:
        """The templates of the own subjects of some paired samples, each pooled without its sample's medium (m, d)."""
        left = self.length[self.row[chosen], None] * self.gallery.directions[self.row[chosen]].astype(np.float64)
        together = np.isin(self.medium, self.medium[chosen])
        media, code = np.unique(self.medium[together], return_inverse=True)
        shares = summed(self.samples.take(together), code, self.weight[together], len(media))
        left -= shares[np.searchsorted(media, self.medium[chosen])]
        unit: FloatArray = left / np.linalg.norm(left, axis=1, keepdims=True)
        return unit.astype(self.samples.directions.dtype)

    @property
    def paired(self) -> Mask:
        """Samples whose subject has another medium, so that they can be mated probes."""
        return np.isfinite(self.own_score)


def _kept(kept: Mask, row: Rows, n_subjects: int) -> Mask:
    # A subject that would lose every sample keeps them: its template must stay a direction.
    emptied = np.bincount(row, kept, minlength=n_subjects) == 0
    return np.asarray(kept | emptied[row])


def _weights(samples: Embeddings, weighting: str) -> Float64Array:
    match weighting:
        case "uniform":
            return np.ones(len(samples))
        case "concentration":
            if samples.concentrations is None:
                raise InvalidConcentrationError(
                    "weighting='concentration' needs concentration, one per sample; pass it or use weighting='uniform'"
                )
            return samples.concentrations.copy()
        case _:
            raise InvalidParameterError(f"weighting must be 'uniform' or 'concentration', got {weighting!r}")


def summed(samples: Embeddings, group: Rows, weight: Float64Array, n_groups: int) -> Float64Array:
    """The weighted sum of the samples of each group (n_groups, d)."""
    n = len(samples)
    sums = np.zeros((n_groups, samples.dim))
    for first in range(0, n, ROWS_COMPARED_AT_ONCE):
        part = slice(first, min(first + ROWS_COMPARED_AT_ONCE, n))
        entries = (weight[part], (group[part], np.arange(part.stop - first)))
        block = csr_array(entries, shape=(n_groups, part.stop - first))
        sums += block @ samples.directions[part].astype(np.float64)
    return sums
