from typing import Any

import numpy as np
import pytest
from sklearn.utils import check_array

from holue.errors import HolueError, InvalidConcentrationError, InvalidEmbeddingsError
from holue.gallery.embeddings import Embeddings, as_directions, as_vectors


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
def test_directions_have_unit_length_in_their_own_precision(dtype: type) -> None:
    X = (np.random.default_rng(0).normal(size=(20, 7)) * 50).astype(dtype)
    directions = Embeddings.from_samples(X).directions
    assert directions.dtype == (np.float32 if dtype in (np.float16, np.float32) else np.float64)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, atol=3e-7)


def test_huge_and_tiny_vectors_do_not_overflow() -> None:
    X = np.array([[1e300, 1e300], [1e-300, 0.0]])
    np.testing.assert_allclose(Embeddings.from_samples(X).directions, [[0.5**0.5, 0.5**0.5], [1, 0]])
    X32 = np.array([[1e30, 1e30]], dtype=np.float32)
    np.testing.assert_allclose(Embeddings.from_samples(X32).directions, [[0.5**0.5, 0.5**0.5]], atol=1e-7)


@pytest.mark.parametrize(
    ("X", "says"),
    [
        ([[1.0, 2.0], [0.0, 0.0]], "zero vector in row 1"),
        ([[1.0, 2.0], [np.nan, 0.0]], "NaN or infinity, first in row 1"),
        ([[np.inf, 2.0]], "NaN or infinity, first in row 0"),
        ([1.0, 2.0], "Expected 2D array"),
        ([[[1.0]]], "got 3D array"),
        ([[1.0, 2.0], [3.0]], "rows of different lengths"),
        ([[1.0], [2.0]], r"1 feature\(s\)"),
        (np.empty((0, 4)), r"0 sample\(s\)"),
        (np.array([[1j, 2.0]]), "Complex data not supported"),
        (np.array([[1.0, "a"]], dtype=object), "object array"),
        (np.array([["1", "2"]]), "embeddings are numbers"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]), "masked array"),
    ],
)
def test_bad_vectors_are_named(X: object, says: str) -> None:
    with pytest.raises(InvalidEmbeddingsError, match=says) as caught:
        Embeddings.from_samples(X)
    assert isinstance(caught.value, HolueError)
    assert isinstance(caught.value, ValueError)


def test_another_dimension_is_named() -> None:
    with pytest.raises(InvalidEmbeddingsError, match=r"3 features.*expecting 4"):
        Embeddings.from_samples(np.eye(3), dim=4)


@pytest.mark.parametrize("kappa", [0.0, -1.0, np.inf, np.nan, [1.0, 0.0, 1.0]])
def test_concentrations_must_be_positive_and_finite(kappa: object) -> None:
    with pytest.raises(InvalidConcentrationError, match="positive and finite"):
        Embeddings.from_samples(np.eye(3), kappa)


@pytest.mark.parametrize("kappa", [[1.0, 2.0], np.ones((3, 2)), "high", [1j, 1, 1]])
def test_concentrations_of_the_wrong_shape_or_kind_are_named(kappa: object) -> None:
    with pytest.raises(InvalidConcentrationError, match="concentration must be"):
        Embeddings.from_samples(np.eye(3), kappa)


def test_a_column_of_concentrations_is_taken() -> None:
    assert Embeddings.from_samples(np.eye(3), [[1.0], [2.0], [3.0]]).concentrations.tolist() == [1, 2, 3]  # type: ignore[union-attr]


def test_formulas_refuse_vectors_that_are_not_unit() -> None:
    with pytest.raises(InvalidEmbeddingsError, match="row 1 has norm 2"):
        as_directions([[1.0, 0.0], [2.0, 0.0]], field="gallery")
    unit = np.eye(3, dtype=np.float32)
    assert as_directions(unit, field="gallery") is unit


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ">f4", np.float16, np.int32])
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_a_matrix_that_is_as_needed_is_taken_as_any_other_object_is(dtype: Any, order: str) -> None:
    given = np.random.default_rng(0).integers(-4, 5, (6, 8)).astype(dtype)
    given = given[::2, ::2] if order == "strided" else np.asarray(given, order=order)  # type: ignore[call-overload]
    taken = as_vectors(given)
    expected = check_array(given, dtype=[np.float64, np.float32])
    assert taken.dtype == (np.float32 if given.dtype == np.float16 else expected.dtype)
    assert np.array_equal(taken, expected)


@pytest.mark.parametrize("shape", [(0, 4), (3, 1), (3,), (2, 2, 2)])
def test_a_matrix_of_a_wrong_shape_is_refused_in_every_precision(shape: tuple[int, ...]) -> None:
    for dtype in (np.float32, np.float64):
        with pytest.raises(InvalidEmbeddingsError):
            as_vectors(np.ones(shape, dtype))
