import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError, InvalidParameterError
from holue.gallery.embeddings import normalize
from holue.gallery.pooling import pool
from holue.gallery.row_sums import add_directions


def slow_pool(X, group, media, kappa, sample_weight):  # type: ignore[no-untyped-def]
    """The definition, one template at a time."""
    out, pooled = {}, {}
    for key in sorted(set(group)):
        total, kappas = np.zeros(X.shape[1]), []
        for medium in sorted({m for g, m in zip(group, media) if g == key}):
            rows = [i for i in range(len(X)) if group[i] == key and media[i] == medium]
            total += np.mean([sample_weight[i] * X[i] / np.linalg.norm(X[i]) for i in rows], axis=0)
            kappas.append(np.mean([kappa[i] for i in rows]))
        out[key] = total / np.linalg.norm(total)
        pooled[key] = np.mean(kappas)
    return out, pooled


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 25), st.booleans())
def test_pooling_is_mean_within_a_medium_and_sum_over_media(seed: int, n: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    group, media = rng.integers(0, 4, n).tolist(), rng.integers(0, 3, n).tolist()
    kappa = rng.uniform(1, 100, n)
    weighting = "concentration" if weighted else "uniform"
    keys, templates = pool(X, group, media=media, concentration=kappa, weighting=weighting)
    expected, expected_kappa = slow_pool(X, group, media, kappa, kappa if weighted else np.ones(n))
    assert keys.tolist() == sorted(expected)
    np.testing.assert_allclose(templates.directions, [expected[k] for k in keys], atol=1e-12)
    np.testing.assert_allclose(templates.concentrations, [expected_kappa[k] for k in keys], rtol=1e-12)  # type: ignore[arg-type]


def test_without_media_every_sample_is_its_own_medium() -> None:
    X = np.random.default_rng(0).normal(size=(6, 3))
    one = pool(X, list("aabbcc"))[1].directions
    other = pool(X, list("aabbcc"), media=range(6))[1].directions
    np.testing.assert_array_equal(one, other)


def test_one_medium_shared_by_two_subjects_is_two_media() -> None:
    X = np.eye(4)
    _, templates = pool(X, ["a", "a", "b", "b"], media=[1, 1, 1, 2])
    np.testing.assert_allclose(templates.directions[1], [0, 0, 0.5**0.5, 0.5**0.5])


def test_a_long_video_does_not_outvote_a_photograph() -> None:
    X = np.array([[1.0, 0.0]] * 9 + [[0.0, 1.0]])
    _, templates = pool(X, ["a"] * 10, media=[1] * 9 + [2])
    np.testing.assert_allclose(templates.directions[0], [0.5**0.5, 0.5**0.5])


def test_precision_weighting_is_the_inverse_variance_mean() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    variance = rng.uniform(0.1, 2, size=(3, 4))
    fused = (X / variance).sum(0) / (1 / variance).sum(0)
    _, templates = pool(X, ["a"] * 3, variance=variance, weighting="precision")
    np.testing.assert_allclose(templates.directions[0], fused / np.linalg.norm(fused))


def test_only_the_proportions_of_concentrations_count() -> None:
    X, kappa = np.random.default_rng(2).normal(size=(4, 3)), np.array([1.0, 5.0, 2.0, 9.0])
    usual = pool(X, [1, 1, 2, 2], concentration=kappa, weighting="concentration")[1].directions
    tiny = pool(X, [1, 1, 2, 2], concentration=kappa * 1e-13, weighting="concentration")[1].directions
    np.testing.assert_allclose(tiny, usual, rtol=1e-12)


def test_float32_samples_give_float32_templates() -> None:
    _, templates = pool(np.eye(3, dtype=np.float32), [1, 1, 2])
    assert templates.directions.dtype == np.float32


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidEmbeddingsError, match="samples of 'a' cancel"):
        pool([[1.0, 0.0], [-1.0, 0.0]], ["a", "a"])
    with pytest.raises(InvalidConcentrationError, match="needs concentration"):
        pool(np.eye(2), ["a", "b"], weighting="concentration")
    with pytest.raises(InvalidConcentrationError, match="needs variance"):
        pool(np.eye(2), ["a", "b"], weighting="precision")
    with pytest.raises(InvalidConcentrationError, match="positive and of the shape"):
        pool(np.eye(2), ["a", "b"], variance=-np.eye(2), weighting="precision")
    with pytest.raises(InvalidParameterError, match="weighting must be one of"):
        pool(np.eye(2), ["a", "b"], weighting="median")


def test_directions_are_summed_as_if_they_were_normalised_first() -> None:
    rng = np.random.default_rng(5)
    group = rng.integers(7, size=60)
    for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-14)):  # some sixty roundings of either precision
        # Of every length a number of that precision can have, so that squares would overflow and vanish.
        reach = 37 if dtype == np.float32 else 300
        X = (rng.normal(size=(60, 9)) * 10.0 ** rng.uniform(-reach, reach, (60, 1))).astype(dtype)
        weight = rng.random(60).astype(dtype)
        sums = np.zeros((7, 9), dtype=dtype)
        assert add_directions(sums, group, X, weight) == -1
        expected = np.zeros((7, 9))
        np.add.at(expected, group, weight[:, None].astype(np.float64) * normalize(X.astype(np.float64)))
        np.testing.assert_allclose(sums, expected, atol=tolerance)
    X[11] = 0
    assert add_directions(sums, group, X, weight) == 11


def test_extreme_qualities_keep_their_proportions() -> None:
    X = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], np.float32)
    _, pooled = pool(X, [0, 0, 1, 1], variance=np.full((4, 3), 1e-44, np.float32), weighting="precision")
    np.testing.assert_allclose(pooled.directions[0], [2**-0.5, 2**-0.5, 0], atol=1e-6)
    _, pooled = pool(X, [0, 0, 1, 1], concentration=[1e300, 1.0, 1e307, 1e307], weighting="concentration")
    np.testing.assert_allclose(pooled.directions, [[1, 0, 0], [0, 1, 0]], atol=1e-6)
