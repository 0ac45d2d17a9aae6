"""A simulated world: subjects, strangers, look-alikes and poor samples whose truth is known.

Subjects have mean directions uniform on the sphere; a sample of quality κ_x is a draw from ``vMF(mean, κ_x)``. Some subjects
come in look-alike pairs, a given cosine apart, and the samples' concentrations are spread log-normally, so that some are poor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Float64Array
from holue.gallery.subjects import UNKNOWN
from holue.sphere import vmf


@dataclass(frozen=True, eq=False)
class SimulatedSamples:
    """Embeddings with their concentration, their label (UNKNOWN for strangers) and, always, the person behind."""

    X: Float64Array  # (n, d)
    y: npt.NDArray[Any]  # (n,) label of an enrolled subject, or UNKNOWN
    concentration: Float64Array  # (n,)
    person: npt.NDArray[np.int64]  # (n,) the person shown, strangers too

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class SimulatedWorld:
    """A gallery to enrol, probes with their truth, and which subjects look alike."""

    gallery: SimulatedSamples
    probes: SimulatedSamples
    means: Float64Array  # (people, d): enrolled first, then strangers
    look_alikes: npt.NDArray[np.int64]  # (pairs, 2) subjects


def simulate(
    *,
    n_subjects: int = 100,
    n_strangers: int = 100,
    dim: int = 128,
    enrolled_samples: int = 3,
    probes_per_person: int = 4,
    concentration: float = 200.0,
    quality_spread: float = 0.6,
    look_alike_pairs: int = 10,
    look_alike_cosine: float = 0.8,
    first_subject: int = 0,
    rng: np.random.Generator,
) -> SimulatedWorld:
    """Draw a world. ``quality_spread`` is the standard deviation of ln κ_x; ``first_subject`` numbers the subjects from there.

    >>> world = simulate(n_subjects=5, n_strangers=2, look_alike_pairs=1, rng=np.random.default_rng(0))
    >>> world.gallery.X.shape, len(world.probes), world.look_alikes.tolist()
    ((15, 128), 28, [[0, 1]])
    """
    if 2 * look_alike_pairs > n_subjects:
        raise InvalidParameterError(
            f"look_alike_pairs={look_alike_pairs} needs {2 * look_alike_pairs} subjects, n_subjects={n_subjects}"
        )
    people = n_subjects + n_strangers
    means = rng.normal(size=(people, dim))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    pairs = np.arange(2 * look_alike_pairs).reshape(-1, 2)
    means[pairs[:, 1]] = _at_cosine(means[pairs[:, 0]], means[pairs[:, 1]], look_alike_cosine)

    def draw(person: npt.NDArray[np.int64], typical: float) -> SimulatedSamples:
        kappa = typical * np.exp(quality_spread * rng.normal(size=len(person)))
        labels = np.full(len(person), UNKNOWN, dtype=object)
        enrolled = person < n_subjects
        labels[enrolled] = (person[enrolled] + first_subject).tolist()
        return SimulatedSamples(vmf.sample(means[person], kappa, rng), labels, kappa, person + first_subject)

    return SimulatedWorld(
        gallery=draw(np.repeat(np.arange(n_subjects), enrolled_samples), concentration),
        probes=draw(np.repeat(np.arange(people), probes_per_person), concentration),
        means=means,
        look_alikes=pairs + first_subject,
    )


def _at_cosine(anchor: Float64Array, other: Float64Array, cosine: float) -> Float64Array:
    across = other - np.sum(other * anchor, axis=1, keepdims=True) * anchor
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    return np.asarray(cosine * anchor + np.sqrt(1 - cosine**2) * across)
