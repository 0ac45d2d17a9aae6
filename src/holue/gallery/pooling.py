"""Pooling: many samples of one subject or template → one embedding.

A medium is one photograph or one recording; the frames of a video share a medium, so that a long video does not
outvote a photograph. With samples ``x_i``, ``w_i = 1 / (samples in the medium of i)``:

    template direction      μ = normalise( Σ_i w_i x_i )               mean within a medium, sum over media
    template concentration  κ = Σ_i w_i κ_i / (number of media)        mean over media of the mean over samples

``pool_by_concentration`` and ``pool_by_precision`` weigh each sample by its quality first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError, InvalidParameterError
from holue.gallery.embeddings import Embeddings, Float64Array, FloatArray, as_vectors, normalize
from holue.gallery.subjects import Subjects, as_subjects

WEIGHTINGS = ("uniform", "concentration", "precision")


def pool(
    X: object,
    group: object,
    *,
    media: object = None,
    concentration: object = None,
    variance: object = None,
    weighting: str = "uniform",
    field: str = "group",
) -> tuple[Subjects, Embeddings]:
    """One template per distinct value of ``group`` → (sorted group keys, their embeddings).

    Every sample is first scaled to unit length. ``weighting`` is ``"uniform"``, ``"concentration"`` (κ_i x_i in place
    of x_i) or ``"precision"`` (x_i/σ_i² coordinate by coordinate, over Σ 1/σ_i²).
    ``field`` is what an error calls ``group``.

    >>> keys, templates = pool([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], ["a", "a", "b"])
    >>> keys.tolist(), templates.directions.round(3).tolist()
    (['a', 'b'], [[0.707, 0.707], [1.0, 0.0]])
    """
    samples = Embeddings.from_samples(X, concentration)
    layout = _Layout.of(as_subjects(group, len(samples), field=field), media)
    match weighting:
        case "uniform":
            summed = layout.weights.astype(samples.directions.dtype) @ samples.directions
            size = layout.n_media
        case "concentration":
            summed = _weighted_by_concentration(samples, layout)
            size = layout.n_media
        case "precision":
            summed = _weighted_by_precision(samples, variance, layout)
            size = np.ones(len(layout.keys))
        case _:
            raise InvalidParameterError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {weighting!r}")
    kappa = samples.concentrations
    pooled = None if kappa is None else layout.average(kappa)
    return layout.keys, Embeddings(_directions(summed, size, layout.keys), pooled)


def pool_scores(scores: Float64Array, group: object, *, media: object = None) -> Float64Array:
    """A number per sample → a number per distinct value of ``group``, in sorted order, as a concentration is pooled.

    >>> pool_scores(np.array([1.0, 3.0, 8.0]), [7, 7, 7], media=[0, 0, 1])
    array([5.])
    """
    return _Layout.of(as_subjects(group, len(scores), field="group"), media).average(scores)


@dataclass(frozen=True)
class _Layout:
    """Which sample belongs to which group, and how much it counts there."""

    keys: Subjects
    weights: csr_array  # (groups, samples): 1 / number of samples in the medium
    n_media: Float64Array

    @classmethod
    def of(cls, group: Subjects, media: object) -> _Layout:
        n = len(group)
        keys, group_code = np.unique(group, return_inverse=True)
        if media is None:
            medium_code = np.arange(n)
        else:
            medium_code = np.unique(as_subjects(media, n, field="media"), return_inverse=True)[1]
        # The same medium id may recur under another subject (two faces in one photograph): pairs are what counts.
        pairs = group_code.astype(np.int64) * (int(medium_code.max()) + 1) + medium_code
        distinct, pair_code, pair_size = np.unique(pairs, return_inverse=True, return_counts=True)
        n_media = np.bincount(distinct // (int(medium_code.max()) + 1), minlength=len(keys)).astype(np.float64)
        entries = (1.0 / pair_size[pair_code], (group_code, np.arange(n)))
        return cls(keys, csr_array(entries, shape=(len(keys), n)), n_media)

    def average(self, values: Float64Array) -> Float64Array:
        """Mean over media of the mean over the samples of a medium."""
        return np.asarray(self.weights @ values / self.n_media)


def _weighted_by_concentration(samples: Embeddings, layout: _Layout) -> FloatArray:
    kappa = samples.concentrations
    if kappa is None:
        raise InvalidConcentrationError(
            "weighting='concentration' needs concentration, one per sample; pass it or use weighting='uniform'"
        )
    # Relative to the subject's own mean: only the proportions count, and tiny concentrations must not vanish.
    weights = layout.weights.multiply(kappa[None, :]).multiply(1 / layout.average(kappa)[:, None])
    return csr_array(weights).astype(samples.directions.dtype) @ samples.directions


def _weighted_by_precision(samples: Embeddings, variance: object, layout: _Layout) -> FloatArray:
    if variance is None:
        raise InvalidConcentrationError(
            "weighting='precision' needs variance (n, d), one row per sample; pass it or use weighting='uniform'"
        )
    sigma2 = as_vectors(variance, dim=None, field="variance")
    if sigma2.shape != samples.directions.shape or not (sigma2 > 0).all():
        raise InvalidConcentrationError(
            f"variance must be positive and of the shape of X {samples.directions.shape}; got {sigma2.shape} "
            f"with smallest entry {sigma2.min():.3g}"
        )
    return np.asarray((layout.weights @ (samples.directions / sigma2)) / (layout.weights @ (1.0 / sigma2)))


def _directions(summed: FloatArray, size: Float64Array, keys: Subjects) -> FloatArray:
    # Samples that cancel leave only rounding: its direction would be noise presented as a template.
    gone = np.linalg.norm(summed, axis=1) < 1e-6 * size
    if gone.any():
        raise InvalidEmbeddingsError(
            f"the samples of {keys[int(gone.argmax())].item()!r} cancel each other: their mean has no direction; "
            "check that they show one subject"
        )
    return normalize(summed)
