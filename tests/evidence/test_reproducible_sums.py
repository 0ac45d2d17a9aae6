"""Log-mass and mean score are the same bits however a gallery is split, ordered, merged and shared among threads."""

import math
from fractions import Fraction
from functools import reduce
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holue.evidence.accumulator import Accumulator
from holue.evidence.block import NOBODY, Block
from holue.evidence.evidence import Evidence, concatenate, merge
from holue.evidence.kernels.binned_sums import (
    BIN_BITS,
    DOUBLE_BINS,
    EMPTY,
    SINGLE_BINS,
    slopes,
    weigh_single,
    window_of,
)
from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.kernels.kernel import kernel_for
from holue.evidence.leave_one_out import evidence_of_one
from holue.evidence.link import ConvolvedLink, cosine_link, power_link
from holue.evidence.reproducible_sums import ReproducibleSums
from holue.evidence.scan import scan

Array = npt.NDArray[np.floating]
A = np.array([0.0, 0.3, 20.0, 80.0, 400.0, 5000.0])
FIELDS = "top_index", "top_scores", "log_mass", "mean_score"


def unit(rng: np.random.Generator, *shape: int) -> Array:
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def assert_identical(one: Evidence, other: Evidence) -> None:
    assert one.n_subjects == other.n_subjects
    for field in FIELDS:
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([1, 2, 7, 70]),
    st.sampled_from([2, 40, 700, 1300]),
    st.sampled_from([0, 1, 5, 60]),
    st.sampled_from([cosine_link, power_link, "convolved"]),
    st.integers(1, 3),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.randoms(),
    st.integers(0, 2**32 - 1),
)
def test_parts_in_any_order_make_the_whole(  # type: ignore[no-untyped-def]
    dtype, n, size, top_k, link, threads, n_parts, holes, ties, shuffler, seed
) -> None:
    rng = np.random.default_rng(seed)
    rows = unit(rng, max(size // 9, 1) if ties else size, 21).astype(dtype)
    rows = rows[rng.integers(len(rows), size=size)] if ties else rows
    probes = unit(rng, n, 21).astype(dtype)
    probes[::2] = rows[rng.integers(size, size=len(probes[::2]))]
    gone = rng.random(size) < 0.3 if holes else np.zeros(size, dtype=bool)
    gone[rng.integers(size)] = False
    numbers = np.sort(rng.choice(10 * size, size, replace=False))
    if link == "convolved":
        link = ConvolvedLink(21, 50.0, rng.uniform(5, 500, n))
    how = {"top_k": top_k, "link": link}
    whole = scan(probes, [Block(rows[~gone], numbers[~gone], NOBODY)], A, threads=1, **how)
    cuts = [0, *np.sort(rng.integers(1, size, size=n_parts - 1)).tolist(), size]
    blocks = [Block(rows[b:e], numbers[b:e], gone[b:e]) for b, e in pairwise(cuts) if b < e]
    shuffler.shuffle(blocks)
    assert_identical(scan(probes, blocks, A, threads=threads, **how), whole)
    parts = [scan(probes, [block], A, threads=threads, **how) for block in blocks if not block.gone.all()]
    shuffler.shuffle(parts)
    assert_identical(reduce(merge, parts, Evidence.empty(n, A, top_k)), whole)
    middle = len(parts) // 2
    if middle:
        assert_identical(merge(reduce(merge, parts[:middle]), reduce(merge, parts[middle:])), whole)


def value(digits: npt.NDArray[np.int64], window: int) -> Fraction:
    """What the digits of some bins stand for."""
    units = (Fraction(2) ** int(window - BIN_BITS * (j + 1)) for j in range(len(digits)))
    return sum((int(digit) * unit for digit, unit in zip(digits, units)), Fraction())


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=70),
    st.sampled_from([0.0, 1e-30, 0.5, 1.0, 28.9, 44.9, 45.0, 577.0, 7213.0, 2.0**20]),
)
@example([-0.5, 0.5], 1.0)  # 2^±½: an exponent half-way between two whole numbers
@example([1.0] * CHUNK, 28.0)
@example([1.0, -1.0], 44.9)
def test_a_term_is_a_function_of_its_score_and_rounded_at_one_place(scores: list[float], slope: float) -> None:
    row, slope = np.array(scores, dtype=np.float32), np.float32(slope)
    window = int(window_of(np.float64(slope) * np.float64(row.max())))
    together = np.array(weigh_single(row, slope, window))
    one_by_one = [np.array(weigh_single(row[j : j + 1], slope, window)) for j in range(len(row))]
    np.testing.assert_array_equal(together, np.sum(one_by_one, axis=0))
    raised = window + BIN_BITS
    reachable = raised <= window_of(np.float64(slope))  # by a cosine of 1; slopes below 45 rely on it
    higher = [np.array(weigh_single(row[j : j + 1], slope, raised)) for j in range(len(row))] if reachable else []
    for one, above in zip(one_by_one, higher):  # a greater term elsewhere only cuts the last digits off
        for half in (slice(0, SINGLE_BINS), slice(SINGLE_BINS, None)):
            assert above[half].tolist() == [0, *one[half][:-1].tolist()]
    for j, digits in enumerate(one_by_one):
        x = Fraction(float(slope)) * Fraction(float(row[j]))
        if x - window > -60:
            exact = 2.0 ** float(x - window)
            unit_of_last = 2.0 ** (-BIN_BITS * SINGLE_BINS)
            found = float(value(digits[:SINGLE_BINS], 0))
            moment = float(value(digits[SINGLE_BINS:], 0))
            # The polynomial, good to 9e-8, its roundings, and that of f; then that to the last bin.
            assert found == pytest.approx(exact, rel=4e-7, abs=unit_of_last)
            assert moment == pytest.approx(float(row[j]) * exact, rel=5e-7, abs=unit_of_last)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 31, 32, 33, 500, CHUNK])
@pytest.mark.parametrize("slope", [0.0, 28.9, 577.0, 7213.0])
def test_a_row_of_any_length_adds_up_to_its_terms(size: int, slope: float) -> None:
    rng = np.random.default_rng(size)
    row = np.concatenate([[0.7], rng.uniform(-1, 0.7, size)])[:size].astype(np.float32)
    window = int(window_of(np.float64(np.float32(slope)) * np.float64(row.max())))
    digits = np.array(weigh_single(row, np.float32(slope), window))
    exponents = np.float64(np.float32(slope)) * row.astype(np.float64) - window
    exact = 2.0 ** np.maximum(exponents, -1000)
    assert float(value(digits[:SINGLE_BINS], 0)) == pytest.approx(math.fsum(exact), rel=4e-7)
    assert float(value(digits[SINGLE_BINS:], 0)) == pytest.approx(math.fsum(row * exact), rel=4e-7, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-800, 800), min_size=1, max_size=40), st.sampled_from([0.0, 0.1, 1.0, 33.0]), st.integers(1, 4)
)
@example([448.0, -11.0], 0.1, 2)  # the moment of -11 is greater than its mass, by more than the headroom of a window
@example([-11.0, 200.0, 448.0], 0.1, 3)
@example([800.0, -800.0, 1.0], 0.0, 3)
def test_float64_scores_of_any_size_add_up_to_their_terms(scores: list[float], a: float, n_parts: int) -> None:
    linked, sharpness = np.array([scores]), np.array([a])
    sums = [Accumulator.start(1, sharpness, 0, DOUBLE_BINS) for _ in range(n_parts)]
    for j in range(len(scores)):
        sums[j % n_parts].absorb(linked[:, j : j + 1])
    whole = Accumulator.start(1, sharpness, 0, DOUBLE_BINS)
    whole.absorb(linked)
    found = reduce(lambda left, right: left.add(right) or left, sums)
    window = int(whole.window[0, 0])
    assert found.window[0, 0] == window
    for number in range(2):
        assert value(found.bins[0, number, 0], window) == value(whole.bins[0, number, 0], window)
    below = np.maximum(a * linked[0] - window * math.log(2.0), -700.0)
    # The product a·g is rounded, by half a unit in its last place.
    off = 1e-14 + 3e-16 * a * np.abs(linked).max()
    assert float(value(whole.bins[0, 0, 0], 0)) == pytest.approx(math.fsum(np.exp(below)), rel=off)


def test_what_is_taken_out_again_leaves_nothing() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1, 1, (3, 200))
    for dtype, n_bins in ((np.float32, SINGLE_BINS), (np.float64, DOUBLE_BINS)):
        sums = Accumulator.start(3, A, 0, n_bins)
        sums.absorb(scores.astype(dtype))
        window = sums.window.copy()
        sums.subtract(scores.astype(dtype)[:, ::-1].copy())
        assert (sums.bins == 0).all()
        np.testing.assert_array_equal(sums.window, window)


@pytest.mark.parametrize("n_probes", [1, 9, 70])
def test_the_sums_are_those_of_the_kernels_scores_each_rounded_once(n_probes: int) -> None:
    rng = np.random.default_rng(n_probes)
    probes, rows = (unit(rng, n, 40).astype(np.float32) for n in (n_probes, 900))
    sums = scan(probes, rows, A, top_k=0, threads=3).sums
    assert sums is not None
    scores, slope = kernel_for(probes, cosine_link, A).scores(rows), slopes(A)
    for i in (0, n_probes - 1):
        for t in range(len(A)):
            window = int(sums.window[i, t])
            assert window == window_of(np.float64(slope[t]) * np.float64(scores[i].max()))
            alone = sum(
                value(np.array(weigh_single(scores[i, j : j + 1].copy(), slope[t], window))[:SINGLE_BINS], window)
                for j in range(900)
            )
            assert value(sums.bins[i, 0, t], window) == alone


def test_a_subject_far_above_the_rest_keeps_what_the_rest_weighs() -> None:
    # The probe's own row weighs e^{a (1 − 0.2)} of the others, and a sum relative to it alone would have lost them.
    rng = np.random.default_rng(3)
    rows = unit(rng, 2000, 64).astype(np.float32)
    seen = scan(rows[:1], rows, [20.0], top_k=1)
    scores = rows[1:].astype(np.float64) @ rows[0].astype(np.float64)
    exact = float(rows[0].astype(np.float64) @ rows[0].astype(np.float64))
    rest = math.exp(seen.log_mass[0, 0] - 20 * exact) - 1
    assert rest == pytest.approx(math.fsum(np.exp(20 * (scores - exact))), rel=1e-5)


def test_evidence_without_sums_merges_up_to_rounding_and_has_none_afterwards() -> None:
    rng = np.random.default_rng(4)
    rows, probes = unit(rng, 30, 8), unit(rng, 2, 8)
    part = scan(probes, rows, [20.0], top_k=2)
    assert part.sums is not None
    assert merge(part, evidence_of_one(np.array([0.3, 0.4]), np.array([77, 78]), [20.0])).sums is None
    single = scan(probes.astype(np.float32), rows.astype(np.float32), [20.0], top_k=2).shifted(30)
    both = merge(part, single)
    assert both.sums is None
    np.testing.assert_allclose(both.log_mass, part.log_mass + math.log(2.0), atol=1e-5)


def test_sums_go_with_their_probes_and_sharpnesses() -> None:
    rng = np.random.default_rng(5)
    rows, probes = unit(rng, 300, 8), unit(rng, 6, 8)
    left, right = (scan(probes, rows[part], A).shifted(part.start) for part in (slice(0, 100), slice(100, 300)))
    whole = scan(probes, rows, A)
    some = np.array([4, 1])
    assert_identical(merge(left.take(some), right.take(some)), whole.take(some))
    assert_identical(merge(left.columns(slice(1, 3)), right.columns(slice(1, 3))), whole.columns(slice(1, 3)))
    halves = [concatenate([part.take(np.arange(2)), part.take(np.arange(2, 6))]) for part in (left, right)]
    assert_identical(merge(*halves), whole)
    empty = ReproducibleSums.empty(1, 2, SINGLE_BINS, 3)
    assert (empty.window == EMPTY).all()
