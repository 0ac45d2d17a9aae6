import numpy as np
import pytest

from holue.datasets.simulated import SimulatedWorld, simulate


@pytest.fixture(scope="session")
def world() -> SimulatedWorld:
    """The enrolled subjects, and probes of them and of strangers."""
    return simulate(n_subjects=40, n_strangers=40, dim=64, concentration=60.0, rng=np.random.default_rng(7))


@pytest.fixture(scope="session")
def development() -> SimulatedWorld:
    """Other people, to calibrate on."""
    return simulate(
        n_subjects=60, n_strangers=60, dim=64, concentration=60.0, first_subject=1000, rng=np.random.default_rng(8)
    )
