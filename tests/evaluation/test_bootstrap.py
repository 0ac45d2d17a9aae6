"""Bootstrap: subjects are drawn, and their probes come along."""

import numpy as np
import pytest

from holue.errors import InvalidParameterError, InvalidSubjectsError
from holue.evaluation.intervals.bootstrap import SubjectBootstrap, subject_clusters


def test_all_probes_of_a_drawn_subject_come_along():
    subject = np.array(["b", "a", "b", "c", "a", "b"])
    resamples = SubjectBootstrap.draw(subject, n_resamples=50, rng=0)
    for resample in range(len(resamples)):
        drawn = subject[resamples.probes(resample)]
        times = {name: int(count) for name, count in zip("abc", resamples.times_drawn[resample])}
        assert sum(times.values()) == 3
        for name, size in (("a", 2), ("b", 3), ("c", 1)):
            assert np.count_nonzero(drawn == name) == times[name] * size


def test_each_subject_is_drawn_once_on_average():
    # Mean of 4000 draws of about Poisson(1): deviation 1/sqrt(4000) = 0.016; five deviations.
    resamples = SubjectBootstrap.draw(np.arange(20), n_resamples=4000, rng=1)
    np.testing.assert_allclose(resamples.times_drawn.mean(axis=0), 1, atol=0.08)
    np.testing.assert_allclose(resamples.times_drawn.var(axis=0), 1 - 1 / 20, atol=0.15)


def test_probes_without_an_id_are_their_own_subject():
    assert subject_clusters(np.array(["x", None, "x", None], dtype=object)).tolist() == [0, 1, 0, 2]
    assert subject_clusters([1.0, np.nan, 1.0, np.nan]).tolist() == [0, 1, 0, 2]
    assert subject_clusters([None, None]).tolist() == [0, 1]


def test_the_same_seed_gives_the_same_resamples_in_any_order_of_probes():
    rng = np.random.default_rng(2)
    subject = rng.integers(0, 9, 40)
    shuffle = rng.permutation(40)
    first = SubjectBootstrap.draw(subject, n_resamples=10, rng=7)
    second = SubjectBootstrap.draw(subject[shuffle], n_resamples=10, rng=np.random.default_rng(7))
    np.testing.assert_array_equal(first.times_drawn, second.times_drawn)
    np.testing.assert_array_equal(first.cluster[shuffle], second.cluster)


def test_bad_input_is_named():
    with pytest.raises(InvalidSubjectsError, match="ids of one type; got int, str"):
        subject_clusters(np.array([1, "1"], dtype=object))
    with pytest.raises(InvalidSubjectsError, match="subject is empty"):
        subject_clusters([])
    with pytest.raises(InvalidParameterError, match="n_resamples"):
        SubjectBootstrap.draw([1, 2], n_resamples=0, rng=0)
