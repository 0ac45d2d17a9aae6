"""The sums and the list that bounds are made of are what they are said to be, to the rounding that the bounds allow for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.quantized.bounded_loops import absorb_scores
from holue.evidence.quantized.bounded_sums import BoundedSums
from holue.evidence.quantized.error_bounds import LEAST_SQUARE, LEAST_WEIGHT, ROUNDING, SQUARE_ROUNDING


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([1, 7, 31, 32, 33, 100, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 40]),
    st.sampled_from([0.0, 0.5, 20.0, 400.0, 1e5, 1e300]),
    st.sampled_from([0.0, 0.01, 0.3]),
    st.integers(0, 2**32 - 1),
)
def test_the_seven_sums_are_within_their_rounding(width: int, a: float, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = np.clip(0.2 + spread * rng.normal(size=(2, width)), -1, 1).astype(np.float32)
    errors = rng.uniform(1e-4, 0.02, width).astype(np.float32)
    sums, scratch = BoundedSums.start(2, np.array([a]), min(width, 64)), np.empty(CHUNK, dtype=np.float32)
    absorb_scores(scores, width, errors, np.arange(10, 10 + width), np.arange(width), scratch, sums.arrays)
    # The scores are rounded in place to what their keys tell.
    x = scores.astype(np.float64) - sums.peak[:, None]
    assert (x.max(axis=1) == 0).all()
    # Where the exponent is below any float64, 0 · −inf is not meant.
    with np.errstate(over="ignore"):
        w = np.exp(np.maximum(a * x, -700.0))
    e = errors.astype(np.float64)
    terms = [w, x * w, x * x * w, w * w, x * w * w, (x * w) ** 2, e * w]
    roundings, losses = [ROUNDING] * 3 + [SQUARE_ROUNDING] * 3 + [ROUNDING], [LEAST_WEIGHT] * 3 + [LEAST_SQUARE] * 3
    farthest = np.abs(x).max()
    for number, (term, rounding, lost) in enumerate(zip(terms, roundings, [*losses, LEAST_WEIGHT])):
        # A weight that is left out may have gone with a score as far as the farthest.
        allowed = rounding * np.abs(term).sum(axis=1) + width * lost * max(1.0, farthest) ** 2
        assert (np.abs(sums.sums[:, 0, number] - term.sum(axis=1)) <= allowed).all(), number


@pytest.mark.parametrize("listed", [1, 5, 64])
@pytest.mark.parametrize("ties", [False, True])
def test_the_highest_keys_are_listed_in_order_and_the_earlier_of_equals_first(listed: int, ties: bool) -> None:
    rng = np.random.default_rng(1)
    width = 2 * CHUNK + 77
    scores = rng.normal(size=(3, width)).astype(np.float32)
    if ties:
        scores = np.round(scores * 4) / np.float32(4)
    errors = np.full(width, 0.125, dtype=np.float32)
    keys = scores + errors
    sums, scratch = BoundedSums.start(3, np.empty(0), listed), np.empty(CHUNK, dtype=np.float32)
    for begin in range(0, width, 500):  # chunks that end anywhere
        block = np.ascontiguousarray(scores[:, begin : begin + 500])
        numbers = np.arange(begin, begin + block.shape[1])
        absorb_scores(block, block.shape[1], errors[begin:], numbers, np.arange(block.shape[1]), scratch, sums.arrays)
    order = np.argsort(-keys, axis=1, kind="stable")[:, :listed]
    np.testing.assert_array_equal(sums.subjects, order)
    np.testing.assert_array_equal(sums.keys, np.take_along_axis(keys, order, axis=1))
