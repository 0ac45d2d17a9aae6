"""Rows in memory and rows mapped from disk are one type to the compiled loops: they are compiled and loaded once."""

from __future__ import annotations

import numpy as np
import pytest

from holue.evidence.kernels.canonical_scores import score_all, score_numbers
from holue.evidence.kernels.exponential_sums import sweep
from holue.evidence.kernels.packed_panels import sweep_panels
from holue.evidence.link import cosine_link
from holue.evidence.scan import scan


@pytest.mark.parametrize("n_probes", [1, 64])
def test_rows_that_cannot_be_written_to_compile_nothing_anew(n_probes: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((40, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    mapped = rows.copy()
    mapped.flags.writeable = False
    probes = rows[np.arange(n_probes) % len(rows)]
    linked = lambda scores, first: 2 * cosine_link(scores, first)  # noqa: E731
    loops = (sweep, sweep_panels, score_numbers, score_all)
    plain = scan(probes, rows, [3.0]), scan(probes, rows, [3.0], link=linked)
    known = [len(loop.signatures) for loop in loops]
    again = scan(probes, mapped, [3.0]), scan(probes, mapped, [3.0], link=linked)
    assert [len(loop.signatures) for loop in loops] == known
    for one, other in zip(plain, again):
        assert np.array_equal(one.top_scores, other.top_scores)
        assert np.array_equal(one.log_mass, other.log_mass)
