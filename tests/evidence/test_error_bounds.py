"""Certified bounds are true: no exact value lies outside, computed in rational numbers and fifty digits."""

from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.evidence.evidence import merge
from holue.evidence.quantized.scan import scan_compressed
from holue.gallery.compressed import FORMS, compress

Array = npt.NDArray[np.floating]


def unit(x: Array, dtype: type) -> Array:
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(dtype)


def equal_rows(rng: np.random.Generator, n: int, dim: int) -> Array:
    return np.tile(rng.normal(size=dim), (n, 1))


def nearly_equal_rows(rng: np.random.Generator, n: int, dim: int) -> Array:
    return rng.normal(size=dim) + 1e-7 * rng.normal(size=(n, dim))


def without_error(rng: np.random.Generator, n: int, dim: int) -> Array:
    """Rows of zeros and one: both codes hold them without an error."""
    return np.eye(dim)[rng.integers(dim, size=n)]


def opposite(rng: np.random.Generator, n: int, dim: int) -> Array:
    return rng.normal(size=dim) * rng.choice([-1.0, 1.0], size=(n, 1)) + 1e-3 * rng.normal(size=(n, dim))


def scattered(rng: np.random.Generator, n: int, dim: int) -> Array:
    return rng.normal(size=(n, dim))


def exact_sums(probe: Array, gallery: Array, a: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Log-mass and mean score of one probe, from scores without any rounding."""
    z = [Fraction(float(x)) for x in probe]
    scores = [sum((Fraction(float(g)) * x for g, x in zip(row, z)), Fraction(0)) for row in gallery]
    with mpmath.workdps(50):
        best = max(scores)
        below = [mpmath.mpf((s - best).numerator) / (s - best).denominator for s in scores]
        weights = [mpmath.exp(mpmath.mpf(a) * x) for x in below]
        mass = mpmath.fsum(weights)
        top = mpmath.mpf(best.numerator) / best.denominator
        mean = top + mpmath.fsum(w * x for w, x in zip(weights, below)) / mass
        return mpmath.mpf(a) * top + mpmath.log(mass), mean


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(FORMS),
    st.sampled_from([equal_rows, nearly_equal_rows, without_error, opposite, scattered]),
    st.sampled_from([2, 70, 150]),
    st.sampled_from([2, 9, 24]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([0.0, 0.5, 30.0, 1e3, 1e6, 1e9, 1e14]),
    st.sampled_from([None, 0.0, 1e-3]),
    st.integers(0, 2**32 - 1),
)
def test_no_exact_value_lies_outside_its_bound(  # type: ignore[no-untyped-def]
    form, make, n_subjects, dim, of_probes, of_gallery, a, tolerance, seed
) -> None:
    rng = np.random.default_rng(seed)
    gallery = unit(make(rng, n_subjects, dim), of_gallery)
    probes = unit(np.stack([gallery[0], gallery[-1] + 0.2 * rng.normal(size=dim), rng.normal(size=dim)]), of_probes)
    whole = scan_compressed(probes, compress(gallery, form), [a], tolerance=tolerance, top_k=2)
    half = n_subjects // 2
    left, right = (
        scan_compressed(probes, compress(part, form), [a], tolerance=tolerance, top_k=2)
        for part in (gallery[:half], gallery[half:])
    )
    for seen in (whole, merge(left, right.shifted(half))):
        assert seen.precision is not None
        for i, probe in enumerate(probes):
            log_mass, mean = exact_sums(probe, gallery, a)
            off, mean_off = abs(seen.log_mass[i, 0] - log_mass), abs(seen.mean_score[i, 0] - mean)
            assert off <= seen.precision.log_mass_bound[i, 0]
            assert mean_off <= seen.precision.mean_score_bound[i, 0]
