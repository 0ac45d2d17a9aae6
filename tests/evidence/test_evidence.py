"""The laws of evidence, against a dense float64 reference."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from holue.errors import InvalidInputError
from holue.evidence.evidence import Evidence, merge
from holue.evidence.scan import scan

FloatArray = npt.NDArray[np.float64]


def dense(probes: FloatArray, gallery: FloatArray, sharpness: list[float], top_k: int, rows: list[int]) -> Evidence:
    """The definition: all scores at once."""
    scores = probes.astype(np.float64) @ gallery.astype(np.float64).T
    n, m = len(probes), len(sharpness)
    top_scores, top_index = np.full((n, top_k), -np.inf), np.full((n, top_k), -1)
    log_mass, mean_score = np.full((n, m), -np.inf), np.zeros((n, m))
    for i in range(n):
        order = sorted(range(len(gallery)), key=lambda j: (-scores[i, j], rows[j]))[:top_k]
        top_scores[i, : len(order)] = scores[i, order]
        top_index[i, : len(order)] = [rows[j] for j in order]
        for t, a in enumerate(sharpness):
            if len(gallery):
                log_mass[i, t] = logsumexp(a * scores[i])
                mean_score[i, t] = np.sum(scores[i] * np.exp(a * scores[i] - log_mass[i, t]))
    return Evidence(top_scores, top_index, log_mass, mean_score, len(gallery), np.asarray(sharpness, dtype=float))


def assert_same(left: Evidence, right: Evidence, tolerance: float = 1e-9) -> None:
    np.testing.assert_array_equal(left.top_index, right.top_index)
    np.testing.assert_allclose(left.top_scores, right.top_scores, atol=tolerance)
    np.testing.assert_allclose(left.log_mass, right.log_mass, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(left.mean_score, right.mean_score, atol=tolerance)
    assert left.n_subjects == right.n_subjects


@st.composite
def worlds(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, list[float], int]:
    """Probes and subjects along the axes, so that scores repeat exactly and ties abound."""
    dim = draw(st.integers(2, 4))
    vector = st.sampled_from([sign * row for sign in (-1.0, 1.0) for row in np.eye(dim)])
    probes = draw(st.lists(vector, min_size=1, max_size=4))
    gallery = draw(st.lists(vector, min_size=0, max_size=9))
    sharpness = draw(st.lists(st.sampled_from([0.0, 0.5, 20.0, 5000.0, 1e6]), min_size=0, max_size=3))
    return np.array(probes), np.array(gallery).reshape(-1, dim), sharpness, draw(st.integers(1, 4))


@settings(max_examples=150, deadline=None)
@given(worlds(), st.data())
def test_splitting_the_gallery_keeps_the_evidence(world, data) -> None:  # type: ignore[no-untyped-def]
    probes, gallery, sharpness, top_k = world
    rows = list(range(len(gallery)))
    part = data.draw(st.lists(st.integers(0, 2), min_size=len(gallery), max_size=len(gallery)))
    pieces = []
    for p in range(3):
        mine = [r for r in rows if part[r] == p]
        pieces.append(dense(probes, gallery[mine], sharpness, top_k, mine))
    whole = dense(probes, gallery, sharpness, top_k, rows)
    a, b, c = pieces
    assert_same(merge(merge(a, b), c), whole)
    assert_same(merge(a, merge(b, c)), whole)
    assert_same(merge(c, merge(b, a)), whole)


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_empty_evidence_is_the_identity(world) -> None:  # type: ignore[no-untyped-def]
    probes, gallery, sharpness, top_k = world
    whole = dense(probes, gallery, sharpness, top_k, list(range(len(gallery))))
    empty = Evidence.empty(len(probes), sharpness, top_k)
    assert_same(merge(empty, whole), whole, 0)
    assert_same(merge(whole, empty), whole, 0)


@settings(max_examples=100, deadline=None)
@given(worlds(), st.integers(1, 3))
def test_scanning_agrees_with_the_dense_definition(world, threads: int) -> None:  # type: ignore[no-untyped-def]
    probes, gallery, sharpness, top_k = world
    if len(gallery) == 0:
        return
    expected = dense(probes, gallery, sharpness, top_k, list(range(len(gallery))))
    assert_same(scan(probes, gallery, sharpness, top_k=top_k, threads=threads), expected)


def test_missing_mass_is_bounded() -> None:
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(50, 8))
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    probes = gallery[:5]
    part = scan(probes, gallery[:30], [10.0, 200.0])
    rest = scan(probes, gallery[30:], [10.0, 200.0])
    assert (rest.log_mass <= part.missing_log_mass(50)).all()
    assert (part.missing_log_mass(30) == -np.inf).all()
    with pytest.raises(InvalidInputError, match="holds only 10"):
        part.missing_log_mass(10)


def test_only_like_evidence_merges() -> None:
    with pytest.raises(InvalidInputError, match="same probes at the same sharpness"):
        merge(Evidence.empty(2, [1.0], 1), Evidence.empty(3, [1.0], 1))
    with pytest.raises(InvalidInputError, match="same probes at the same sharpness"):
        merge(Evidence.empty(2, [1.0], 1), Evidence.empty(2, [2.0], 1))
