"""World: the enrolled vectors and the probes of the load test, the same for every system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float32Array = npt.NDArray[np.float32]

MATED_COSINE = 0.6
"""Between a probe that shows an enrolled subject and the subject's vector."""
THRESHOLD = 0.4


@dataclass(frozen=True, eq=False)
class World:
    """Unit vectors: one for each subject, and probes of which every other one shows somebody enrolled."""

    gallery: Float32Array
    probes: Float32Array

    @classmethod
    def random(cls, subjects: int, dim: int, probes: int, seed: int) -> World:
        """Uniform directions; a mated probe has the cosine 0.6 with its subject."""
        rng = np.random.default_rng(seed)
        gallery = _unit(rng.standard_normal((subjects, dim), dtype=np.float32))
        noise = _unit(rng.standard_normal((probes, dim), dtype=np.float32))
        shown = gallery[rng.integers(subjects, size=probes)]
        across = _unit(noise - np.sum(noise * shown, axis=1, keepdims=True) * shown)
        mated = MATED_COSINE * shown + np.sqrt(1 - MATED_COSINE**2) * across
        even = np.arange(probes)[:, None] % 2 == 0
        return cls(gallery, np.where(even, mated, noise).astype(np.float32))


def _unit(rows: Float32Array) -> Float32Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
