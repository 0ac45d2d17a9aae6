import numpy as np
import pytest

from holue.datasets.simulated import simulate
from holue.gallery.gallery import Gallery
from holue.gallery.left_out import LeftOut
from holue.recognition.audit.confusion import Straying, probability_taken
from holue.recognition.audit.duplicates import neighbours
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


def test_the_template_without_a_sample_is_pooled_from_the_others():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 8)), np.repeat(np.arange(10), 4)
    media = np.tile([0, 0, 1, 2], 10)
    left = LeftOut.of(X, y, media=media)
    chosen = np.array([0, 2, 7, 31])
    for i, template in zip(chosen, left.templates_without(chosen)):
        rest = (y != y[i]) | (media != media[i])
        np.testing.assert_allclose(template, Gallery.from_samples(X[rest], y[rest], media=media[rest]).directions[y[i]])


def world(seed):
    """Poor and good samples, and people who resemble each other more or less."""
    rng = np.random.default_rng(seed)
    return simulate(
        n_subjects=300,
        n_strangers=0,
        dim=32,
        enrolled_samples=12,
        concentration=25.0,
        look_alike_pairs=60,
        look_alike_cosine=0.75,
        rng=rng,
    ).gallery


def test_held_out_samples_are_taken_for_a_neighbour_as_often_as_foretold():
    foretold = observed = 0.0
    threshold = 0.5
    for seed in range(3):
        samples = world(seed)
        held = np.arange(len(samples.X)) % 2 == 0
        left = LeftOut.of(samples.X[~held], samples.person[~held])
        near, cosine = neighbours(left, 1)
        row, x = samples.person[held], samples.X[held] / np.linalg.norm(samples.X[held], axis=1, keepdims=True)
        own = np.einsum("ij,ij->i", x, left.gallery.directions[row])
        other = np.einsum("ij,ij->i", x, left.gallery.directions[near[row, 0]])
        straying = Straying.of(left, threads=1)
        assert straying is not None
        observed += float(((other >= threshold) & (other > own)).sum())
        foretold += float(straying.probability_taken(cosine[row, 0], threshold).sum())
    assert observed > 50
    # Some hundred events (a tenth), and left-out templates that have one sample fewer.
    assert foretold == pytest.approx(observed, rel=0.4)


def test_known_faults_do_not_count_as_straying():
    samples = world(0)
    subject = samples.person.copy()
    subject[: 6 * 12 : 2] += 1000  # six people enrolled twice
    left = LeftOut.of(samples.X, subject)
    twins = {(i, 300 + i) for i in range(6)}
    cosine = np.array([0.5, 0.7])
    with_them, without = Straying.of(left, threads=1), Straying.of(left, aside=twins, threads=1)
    assert with_them is not None
    assert without is not None
    assert (without.weight == 0).sum() > (with_them.weight == 0).sum() == 0
    assert without.probability_taken(cosine, 0.5)[1] < with_them.probability_taken(cosine, 0.5)[1]
    assert Straying.of(LeftOut.of(samples.X[::12], np.arange(300))) is None, (
        "nothing strays where there is one sample each"
    )
