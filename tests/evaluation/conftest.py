"""A crowd: one part of a protocol, of simulated people and strangers."""

from collections.abc import Callable

import numpy as np
import pytest

from holue.datasets.simulated import simulate
from holue.evaluation.protocol import ProtocolPart
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery


@pytest.fixture(scope="session")
def crowd() -> Callable[..., ProtocolPart]:
    """Makes a part of as many people as strangers, numbered from ``first_subject`` on."""

    def part(first_subject: int, seed: int, people: int = 200) -> ProtocolPart:
        world = simulate(
            n_subjects=people,
            n_strangers=people,
            dim=32,
            concentration=60.0,
            look_alike_pairs=5,
            first_subject=first_subject,
            rng=np.random.default_rng(seed),
        )
        probes = world.probes
        return ProtocolPart(
            Gallery.from_samples(world.gallery.X, world.gallery.person),
            Embeddings.from_samples(probes.X, probes.concentration),
            probes.person,
            groups=np.where(probes.person % 3 == 0, "f", "m"),
            qualities={"concentration": probes.concentration},
        )

    return part
