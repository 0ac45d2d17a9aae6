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
import numpy.typing as npt

from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError, InvalidParameterError
from holue.gallery.embeddings import Embeddings, Float64Array, FloatArray, as_concentrations, as_vectors, normalize
from holue.gallery.row_sums import add_directions, add_rows
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
    vectors = as_vectors(X)
    kappa = as_concentrations(concentration, len(vectors))
    layout = _Layout.of(as_subjects(group, len(vectors), field=field), media)
    match weighting:
        case "uniform":
            summed, size = layout.sum_directions(vectors, layout.share), layout.n_media
        case "concentration":
            summed, size = layout.sum_directions(vectors, _by_concentration(kappa, layout)), layout.n_media
        case "precision":
            summed, size = _by_precision(vectors, variance, layout), np.ones(len(layout.keys))
        case _:
            raise InvalidParameterError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {weighting!r}")
    pooled = None if kappa is None else layout.average(kappa)
    return layout.keys, Embeddings(_directions(summed, size, layout.keys), pooled)


def pool_probes(
    X: object, group: object, *, media: object = None, concentration: object = None, field: str = "group"
) -> tuple[Subjects, Embeddings]:
    """One probe per distinct value of ``group`` → (sorted group keys, their embeddings), as :func:`pool` with uniform weights.

    The concentrations of the media are added up, where a template has their mean:

        κ = Σ_i w_i κ_i,    κ_i = 1 where no concentration is given, so that κ is the number of media

    So a probe of more samples is sharper, which is what its certainty depends on.

    >>> keys, probes = pool_probes(np.eye(3), ["a", "a", "a"], media=[0, 0, 1], concentration=[10.0, 20.0, 40.0])
    >>> probes.concentrations
    array([55.])
    """
    vectors = as_vectors(X)
    kappa = as_concentrations(concentration, len(vectors))
    layout = _Layout.of(as_subjects(group, len(vectors), field=field), media)
    summed = layout.sum_directions(vectors, layout.share)
    total = layout.n_media * layout.average(np.ones(len(vectors)) if kappa is None else kappa)
    return layout.keys, Embeddings(_directions(summed, layout.n_media, layout.keys), total)


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
    group: npt.NDArray[np.int64]  # of each sample, by its place in ``keys``
    share: Float64Array  # of each sample: 1 / number of samples in its medium
    n_media: Float64Array

    @classmethod
    def of(cls, group: Subjects, media: object) -> _Layout:
        n = len(group)
        if media is None and n and bool((group[1:] > group[:-1]).all()):  # one sample each, in order: nothing to sort
            return cls(group, np.arange(n), np.ones(n), np.ones(n))
        keys, group_code = np.unique(group, return_inverse=True)
        if media is None:
            medium_code = np.arange(n)
        else:
            medium_code = np.unique(as_subjects(media, n, field="media"), return_inverse=True)[1]
        # The same medium id may recur under another subject (two faces in one photograph): pairs are what counts.
        pairs = group_code.astype(np.int64) * (int(medium_code.max()) + 1) + medium_code
        distinct, pair_code, pair_size = np.unique(pairs, return_inverse=True, return_counts=True)
        n_media = np.bincount(distinct // (int(medium_code.max()) + 1), minlength=len(keys)).astype(np.float64)
        return cls(keys, group_code.astype(np.int64), 1.0 / pair_size[pair_code], n_media)

    def average(self, values: Float64Array) -> Float64Array:
        """Mean over media of the mean over the samples of a medium."""
        return np.bincount(self.group, self.share * values, minlength=len(self.keys)) / self.n_media

    def sum_directions(self, vectors: FloatArray, weight: Float64Array) -> FloatArray:
        """``Σ weight_i x_i / ‖x_i‖`` of each group."""
        summed = np.zeros((len(self.keys), vectors.shape[1]), dtype=vectors.dtype)
        zero = add_directions(summed, self.group, vectors, weight.astype(vectors.dtype))
        if zero >= 0:
            raise InvalidEmbeddingsError(f"X has a zero vector in row {zero}: it has no direction; remove the row")
        return summed

    def sum_rows(self, rows: FloatArray) -> FloatArray:
        """``Σ share_i row_i`` of each group."""
        summed = np.zeros((len(self.keys), rows.shape[1]), dtype=rows.dtype)
        add_rows(summed, self.group, rows, self.share.astype(rows.dtype))
        return summed


def _by_concentration(kappa: Float64Array | None, layout: _Layout) -> Float64Array:
    if kappa is None:
        raise InvalidConcentrationError(
            "weighting='concentration' needs concentration, one per sample; pass it or use weighting='uniform'"
        )
    # Relative to the subject's own greatest, then its mean: only proportions count; neither tiny nor huge ones may be lost.
    highest = np.zeros(len(layout.keys))
    np.maximum.at(highest, layout.group, kappa)
    relative = kappa / highest[layout.group]
    return layout.share * (relative / layout.average(relative)[layout.group])


def _by_precision(vectors: FloatArray, variance: object, layout: _Layout) -> FloatArray:
    if variance is None:
        raise InvalidConcentrationError(
            "weighting='precision' needs variance (n, d), one row per sample; pass it or use weighting='uniform'"
        )
    sigma2 = as_vectors(variance, dim=None, field="variance")
    if sigma2.shape != vectors.shape or not (sigma2 > 0).all():
        raise InvalidConcentrationError(
            f"variance must be positive and of the shape of X {vectors.shape}; got {sigma2.shape} "
            f"with smallest entry {sigma2.min():.3g}"
        )
    wide = sigma2.astype(np.float64)
    smallest = wide.min()
    with np.errstate(divide="ignore", invalid="ignore"):
        summed = layout.sum_rows(normalize(vectors) * (smallest / wide)) / layout.sum_rows(smallest / wide)
    if not np.isfinite(summed).all():
        raise InvalidConcentrationError(
            f"variance spans from {smallest:.3g} to {wide.max():.3g}, too far to be weighed against each other; clip it, or "
            "use weighting='uniform'"
        )
    return summed.astype(vectors.dtype)


def _directions(summed: FloatArray, size: Float64Array, keys: Subjects) -> FloatArray:
    # Samples that cancel leave only rounding: its direction would be noise presented as a template.
    gone = np.linalg.norm(summed, axis=1) < 1e-6 * size
    if gone.any():
        raise InvalidEmbeddingsError(
            f"the samples of {keys[int(gone.argmax())].item()!r} cancel each other: their mean has no direction; "
            "check that they show one subject"
        )
    return normalize(summed)
