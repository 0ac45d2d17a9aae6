"""World: random galleries and probes of the wanted size; half of the probes show somebody enrolled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]

CONCENTRATION, TEMPERATURE, TOP_K = 400.0, 20.0, 5
"""What is asked of holue: the top five, log-mass and mean score at κ and at κ/T."""
DRAWN_AT_ONCE = 100_000


def random_directions(rng: np.random.Generator, n: int, dim: int) -> Float32Array:
    """Uniform unit vectors (n, d) in float32."""
    x = rng.standard_normal((n, dim), dtype=np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def random_probes(rng: np.random.Generator, gallery: Float32Array, n: int) -> Float32Array:
    """Probes (n, d): the odd ones are noisy copies of subjects (cosine about 0.9), the even ones strangers."""
    probes = random_directions(rng, n, gallery.shape[1])
    mated = probes[1::2]
    mated *= 0.5
    mated += gallery[rng.integers(len(gallery), size=len(mated))]
    mated /= np.linalg.norm(mated, axis=1, keepdims=True)
    return probes


def mapped_directions(rng: np.random.Generator, path: Path, n: int, dim: int) -> Float32Array:
    """A gallery (n, d) written to a file piece by piece, and mapped from there for reading."""
    with path.open("wb") as file:
        for first in range(0, n, DRAWN_AT_ONCE):
            random_directions(rng, min(DRAWN_AT_ONCE, n - first), dim).tofile(file)
    return np.memmap(path, dtype=np.float32, mode="r", shape=(n, dim))
