import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidConcentrationError, InvalidParameterError
from holue.gallery.gallery import Gallery
from holue.gallery.left_out import LeftOut
from holue.gallery.pooling import pool


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 30),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(["uniform", "concentration"]),
    st.integers(0, 2**32),
)
def test_own_scores_are_those_of_a_template_pooled_anew_without_the_medium(n, people, with_media, weighting, seed):
    rng = np.random.default_rng(seed)
    X, y, kappa = rng.normal(size=(n, 6)), rng.integers(people, size=n), rng.uniform(1, 9, size=n)
    media = rng.integers(4, size=n) if with_media else np.arange(n)
    left = LeftOut.of(X, y, kappa, media=media if with_media else None, weighting=weighting)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for i in range(n):
        rest = (y == y[i]) & (media != media[i])
        assert left.paired[i] == rest.any()
        if rest.any():
            _, template = pool(X[rest], y[rest], media=media[rest], concentration=kappa[rest], weighting=weighting)
            # Removing a share from a sum of a few samples costs a digit or two where they nearly cancel.
            assert left.own_score[i] == pytest.approx(float(unit[i] @ template.directions[0]), abs=1e-9)


def test_the_gallery_is_the_one_that_pooling_gives():
    rng = np.random.default_rng(0)
    X, y, media = rng.normal(size=(30, 5)), rng.integers(6, size=30), rng.integers(3, size=30)
    left, pooled = LeftOut.of(X, y, media=media), Gallery.from_samples(X, y, media=media)
    assert left.gallery.subjects.tolist() == pooled.subjects.tolist()
    np.testing.assert_allclose(left.gallery.directions, pooled.directions, atol=1e-12)


def test_samples_not_kept_count_in_no_template_unless_nothing_else_would_be_left():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, 0.6]])
    left = LeftOut.of(X, [1, 1, 1, 2], kept=np.array([True, False, True, False]))
    np.testing.assert_allclose(left.gallery.directions[0], np.array([0.8, 0.4]) * 5**0.5 / 2, atol=1e-12)
    np.testing.assert_allclose(left.gallery.directions[1], [0.8, 0.6], atol=1e-12)
    assert left.own_score[0] == pytest.approx(0.6), "compared with the other kept sample"
    assert left.own_score[1] == pytest.approx(0.4 * 5**0.5 / 2), "compared with all kept ones"


def test_bad_settings_are_named():
    with pytest.raises(InvalidConcentrationError, match="needs concentration"):
        LeftOut.of(np.eye(2), [1, 2], weighting="concentration")
    with pytest.raises(InvalidParameterError, match="weighting"):
        LeftOut.of(np.eye(2), [1, 2], weighting="best")
