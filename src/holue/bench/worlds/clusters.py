"""Clusters: galleries whose subjects look alike in groups, drawn at any size, and probes of enrolled people and of strangers.

Two worlds. ``Families`` is made up: a hundred look-alikes around each of K/100 centres, which themselves crowd around 200
others. ``Mixture`` has the shape of real embeddings: normal components fitted to the templates of a real collection, of
which there are too few to be a large gallery themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from holue.bench.worlds.world import DRAWN_AT_ONCE, Float32Array, random_directions

Draw = Callable[[np.random.Generator, int], Float32Array]
"""So many new subjects of a world."""


@dataclass(frozen=True, eq=False)
class Families:
    """Subjects around families (cosine 0.7), families around groups (cosine 0.6)."""

    centres: Float32Array

    @classmethod
    def found(cls, rng: np.random.Generator, n_subjects: int, dim: int) -> Self:
        """The families of a gallery of so many subjects."""
        groups = random_directions(rng, 200, dim)
        n = max(n_subjects // 100, 1)
        return cls(_around(groups[rng.integers(len(groups), size=n)], 0.6, rng))

    def __call__(self, rng: np.random.Generator, n: int) -> Float32Array:
        """New members of random families."""
        return _around(self.centres[rng.integers(len(self.centres), size=n)], 0.7, rng)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Normal components, projected on the sphere."""

    weights: npt.NDArray[np.float64]
    means: Float32Array  # (c, d)
    roots: Float32Array  # (c, d, d) of the covariances

    @classmethod
    def fit(cls, templates: npt.NDArray[np.floating[Any]], dim: int, *, components: int = 8, seed: int = 0) -> Self:
        """Fit unit ``templates`` (n, D), first projected on their ``dim`` main directions."""
        from sklearn.mixture import GaussianMixture

        centred = templates - templates.mean(axis=0)
        axes = np.linalg.svd(centred, full_matrices=False)[2][:dim].T if dim < templates.shape[1] else None
        x = templates if axes is None else templates @ axes
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
        # A few steps: a shape is wanted, not the best of all fits.
        model = GaussianMixture(components, reg_covar=1e-4, random_state=seed, max_iter=20, tol=0.1).fit(x)
        roots = np.linalg.cholesky(model.covariances_)
        return cls(model.weights_, model.means_.astype(np.float32), roots.astype(np.float32))

    def __call__(self, rng: np.random.Generator, n: int) -> Float32Array:
        """New subjects, in random order."""
        label = rng.choice(len(self.weights), size=n, p=self.weights)
        x = rng.standard_normal((n, self.means.shape[1]), dtype=np.float32)
        for number, (mean, root) in enumerate(zip(self.means, self.roots)):
            x[label == number] = mean + x[label == number] @ root.T
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return x


def enrol(draw: Draw, rng: np.random.Generator, n: int, path: Path | None = None) -> Float32Array:
    """A gallery of ``n`` subjects; with ``path`` written there and mapped for reading."""
    pieces = (draw(rng, min(DRAWN_AT_ONCE, n - first)) for first in range(0, n, DRAWN_AT_ONCE))
    if path is None:
        return np.concatenate(list(pieces))
    width = 0
    with path.open("wb") as file:
        for piece in pieces:
            width = piece.shape[1]
            piece.tofile(file)
    return np.memmap(path, dtype=np.float32, mode="r", shape=(n, width))


def mated_probes(gallery: Float32Array, rng: np.random.Generator, n: int, cosine: float, spread: float) -> Float32Array:
    """Random subjects, each seen at a cosine drawn around ``cosine``."""
    rows = gallery[rng.integers(len(gallery), size=n)]
    cosines = np.clip(rng.normal(cosine, spread, size=(n, 1)), 0.0, 0.99).astype(np.float32)
    return _around(rows, cosines, rng)


def _around(rows: Float32Array, cosine: float | Float32Array, rng: np.random.Generator) -> Float32Array:
    """A random direction at the given cosine to each row."""
    noise = rng.standard_normal(rows.shape, dtype=np.float32)
    noise -= np.einsum("ij,ij->i", noise, rows)[:, None] * rows
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    around: Float32Array = cosine * rows + np.sqrt(1 - np.square(cosine)).astype(np.float32) * noise
    return around
