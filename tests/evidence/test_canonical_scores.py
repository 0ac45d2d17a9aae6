"""Canonical scores by register tiles against the loop over one pair after another, bit for bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.evidence.kernels.canonical_scores import canonical_score, score_all


@settings(deadline=None)
@given(
    st.sampled_from([np.float32, np.float64]),
    st.integers(1, 70),
    st.integers(1, 70),
    st.one_of(st.integers(1, 50), st.sampled_from([128, 512, 515])),
    st.integers(0, 2**32 - 1),
)
def test_tiles_score_every_pair_as_one_pair_is_scored(  # type: ignore[no-untyped-def]
    dtype, n_rows: int, n_probes: int, dim: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows, probes = rng.normal(size=(n_rows, dim)).astype(dtype), rng.normal(size=(n_probes, dim))
    scores = np.full((n_probes, n_rows), np.nan)
    score_all(rows, probes, scores)
    one_by_one = [[canonical_score(rows, j, probes, i) for j in range(n_rows)] for i in range(n_probes)]
    np.testing.assert_array_equal(scores, one_by_one)
