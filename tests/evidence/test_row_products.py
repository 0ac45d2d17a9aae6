"""Tests of the products of one probe with eight rows, against numpy in float64."""

# mypy: disable-error-code="no-untyped-call, no-untyped-def, untyped-decorator"

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from holue.evidence.kernels.row_products import RUNNING, multiply_rows
from holue.evidence.quantized.code_loops import reads_halves
from holue.sphere.compiled import njit


@njit()
def _multiply(rows, row, last, probes, i, length, scores, j):
    multiply_rows(rows, row, last, probes, i, length, scores, j)


def _case(form: str, n: int, width: int) -> tuple[npt.NDArray, npt.NDArray, npt.NDArray]:  # type: ignore[type-arg]
    """Rows as they are stored, what they stand for, and two probes."""
    rng = np.random.default_rng([n, width])
    if form == "int8":
        rows = rng.integers(-127, 128, (n, width)).astype(np.int8)
        return rows, rows.astype(np.float64), rng.integers(-900, 900, (2, width)).astype(np.int16)
    values = rng.normal(size=(n, width)).astype(np.float16 if form == "float16" else np.float32)
    rows = values.view(np.uint16) if form == "float16" else values
    return rows, values.astype(np.float64), rng.normal(size=(2, width)).astype(np.float32)


@pytest.mark.parametrize("form", ["float32", "float16", "int8"])
@pytest.mark.parametrize("width", [16, 48, 64, 128, 208])
@pytest.mark.parametrize(("n", "row"), [(20, 3), (20, 16), (1, 0)])
def test_products_are_those_of_the_rows(form: str, width: int, n: int, row: int) -> None:
    if form == "float16" and not reads_halves():
        pytest.skip("this processor does not convert float16")
    rows, values, probes = _case(form, n, width)
    scores = np.full((2, 24), np.nan, dtype=np.float32)
    _multiply(rows, row, n - 1, probes, 1, width, scores, 8)
    wanted = values[np.minimum(np.arange(row, row + 8), n - 1)] @ probes[1].astype(np.float64)
    scale = np.abs(values).max() * np.abs(probes[1].astype(np.float64)).sum()
    if form == "int8":
        np.testing.assert_array_equal(scores[1, 8:16], wanted.astype(np.float32))
    else:
        roundings = width // (8 * RUNNING) + 10
        np.testing.assert_allclose(scores[1, 8:16], wanted, rtol=0, atol=roundings * 2.0**-24 * scale)
    assert np.isnan(scores[0]).all()
    assert np.isnan(scores[1, :8]).all()
    assert np.isnan(scores[1, 16:]).all()


def test_equal_rows_score_equally_wherever_they_stand() -> None:
    rng = np.random.default_rng(5)
    rows = np.tile(rng.normal(size=104).astype(np.float32), (8, 1))
    scores = np.empty((1, 8), dtype=np.float32)
    _multiply(rows, 0, 7, rng.normal(size=(1, 104)).astype(np.float32), 0, 104, scores, 0)
    assert len(set(scores[0].tolist())) == 1
