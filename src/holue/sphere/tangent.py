"""Tangent: random points at given distances from a mean direction, the last step of every sampler here.

A density that depends on the cosine w = μ·x alone is sampled in two steps: draw the cosine, then a uniform
direction v in the tangent space of μ, and put x = w μ + √(1 − w²) v. The cosine travels as its gap y = 1 − w, which
keeps its digits at high concentration, where w is close to 1: x = (1 − y) μ + √(y(2 − y)) v.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError, InvalidParameterError
from holue.sphere.parameters import FloatArray, check_concentration, check_dim

#: How far a norm may be from 1: what rounding to half precision does. It is removed before use.
_NORM_ROUNDING = 1e-3

#: (dim, concentration of each draw, generator) → gap of each draw.
DrawGap: TypeAlias = Callable[[int, FloatArray, np.random.Generator], FloatArray]


def sample_around(
    mean_directions: ArrayLike,
    concentration: ArrayLike,
    rng: np.random.Generator,
    n_samples: int | None,
    draw_gap: DrawGap,
) -> FloatArray:
    """Draw points around mean directions, their gaps coming from ``draw_gap``.

    The result has the shape of ``mean_directions``; ``n_samples``, if given, adds an axis before the last.

    >>> north = lambda dim, concentration, rng: np.zeros_like(concentration)
    >>> sample_around([0.0, 1.0], 5.0, np.random.default_rng(0), 3, north).shape
    (3, 2)
    """
    means = _unit_rows(mean_directions)
    concentrations = _one_per_mean(concentration, means)
    count = 1 if n_samples is None else _check_n_samples(n_samples)
    gap = draw_gap(means.shape[-1], np.repeat(concentrations, count), rng)
    drawn = _at_gap(means[..., None, :], gap.reshape(*concentrations.shape, count, 1), rng)
    return drawn[..., 0, :] if n_samples is None else drawn


def _at_gap(means: FloatArray, gap: FloatArray, rng: np.random.Generator) -> FloatArray:
    tangent = rng.standard_normal((*gap.shape[:-1], means.shape[-1]))
    # Twice: where the first pass removes nearly all of a vector, rounding leaves it tilted.
    for _ in range(2):
        tangent -= np.einsum("...d,...d->...", tangent, means)[..., None] * means
        tangent /= np.linalg.norm(tangent, axis=-1, keepdims=True)
    tangent *= np.sqrt(gap * (2 - gap))
    tangent += (1 - gap) * means
    return tangent


def _unit_rows(mean_directions: ArrayLike) -> FloatArray:
    try:
        given = np.asarray(mean_directions)
    except ValueError:
        raise InvalidEmbeddingsError("mean_directions must be rows of one length, got a ragged list") from None
    if given.dtype.kind not in "fiu":
        raise InvalidEmbeddingsError(f"mean_directions must be real numbers, got dtype {given.dtype}")
    if given.ndim not in (1, 2):
        raise InvalidEmbeddingsError(f"mean_directions must have shape (d,) or (n, d), got {given.shape}")
    check_dim(given.shape[-1])
    means = given.astype(np.float64)
    norms = np.linalg.norm(means, axis=-1, keepdims=True)
    broken = ~(np.abs(norms - 1) <= _NORM_ROUNDING)
    if broken.any():
        raise InvalidEmbeddingsError(
            f"mean_directions must have norm 1, got {norms[broken][0]:.6g}; divide each row by its norm"
        )
    return np.asarray(means / norms)


def _one_per_mean(concentration: ArrayLike, means: FloatArray) -> FloatArray:
    values = check_concentration(concentration)
    if values.ndim > 0 and values.shape != means.shape[:-1]:
        raise InvalidConcentrationError(
            f"concentration must be one number or have shape {means.shape[:-1]}, one per mean direction, "
            f"got shape {values.shape}"
        )
    return np.broadcast_to(values, means.shape[:-1])


def _check_n_samples(n_samples: int) -> int:
    try:
        count = operator.index(n_samples)
    except TypeError:
        raise InvalidParameterError(f"n_samples must be an integer or None, got {n_samples!r}") from None
    if count < 1:
        raise InvalidParameterError(f"n_samples must be at least 1, got {count}; omit it for one draw per mean")
    return count
