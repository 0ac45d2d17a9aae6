import numpy as np
import pytest

from holue.recognition.audit.confusion import probability_taken
from holue.sphere import vmf


@pytest.mark.parametrize(
    ("dim", "kappa", "cosine", "threshold"), [(3, 5.0, 0.3, 0.2), (16, 30.0, 0.7, 0.5), (64, 60.0, 0.9, 0.6)]
)
def test_the_integral_is_what_sampling_gives(dim, kappa, cosine, threshold):
    rng = np.random.default_rng(0)
    first, second = np.zeros(dim), np.zeros(dim)
    first[0], second[0], second[1] = 1.0, cosine, np.sqrt(1 - cosine**2)
    z = vmf.sample(np.tile(first, (40000, 1)), np.full(40000, kappa), rng)
    taken = (z @ second >= threshold) & (z @ second > z @ first)
    expected = probability_taken(np.array([cosine]), dim, kappa, threshold)[0]
    # 40 000 draws: four standard deviations, and 2e-4 for the quadrature.
    assert taken.mean() == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / 40000) + 2e-4)


def test_closer_look_alikes_are_taken_more_often_and_identical_ones_half_of_the_time():
    p = probability_taken(np.linspace(-0.9, 1.0, 50), 64, 60.0, -1.0)
    assert (np.diff(p) >= -1e-12).all()
    assert p[-1] == pytest.approx(0.5, abs=1e-4)
