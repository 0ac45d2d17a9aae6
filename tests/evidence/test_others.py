import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import GalleryTooSmallError
from holue.evidence import leave_one_out as module
from holue.evidence.evidence import merge
from holue.evidence.leave_one_out import evidence_of_one, evidence_of_others
from holue.evidence.quantized import scan as compressed
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery.compressed import compress
from holue.gallery.gallery import Gallery


def unit(rng, *shape):
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 12), st.integers(1, 20), st.integers(1, 5), st.integers(0, 2**32))
def test_evidence_of_others_is_a_scan_of_the_gallery_without_the_own_subject(n_subjects, n, at_once, seed):
    rng = np.random.default_rng(seed)
    enrolled, probes, own = unit(rng, n_subjects, 8), unit(rng, n, 8), rng.integers(n_subjects, size=n)
    gallery = Gallery.of(np.arange(n_subjects), enrolled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MASKED_SUBJECTS", at_once)
        patch.setattr(module, "MASKED_PROBES", 3)
        found = evidence_of_others(probes, own, gallery, [400.0, 20.0], top_k=3)
    assert found.n_subjects == n_subjects - 1
    for i in range(n):
        rest = np.delete(np.arange(n_subjects), own[i])
        slow = scan(probes[i : i + 1], enrolled[rest], [400.0, 20.0], top_k=3)
        there = slow.top_index[0] >= 0
        assert found.top_index[i, there].tolist() == rest[slow.top_index[0, there]].tolist()
        # Sums of up to 12 exponentials in another order.
        np.testing.assert_allclose(found.log_mass[i], slow.log_mass[0], rtol=1e-12)
        np.testing.assert_allclose(found.mean_score[i], slow.mean_score[0], rtol=1e-11, atol=1e-13)


def test_the_own_subject_put_back_gives_the_whole_gallery_even_where_it_dominates():
    rng = np.random.default_rng(0)
    enrolled = unit(rng, 40, 16)
    own = np.arange(40)
    whole = scan(enrolled, enrolled, [5000.0], top_k=4)
    others = evidence_of_others(enrolled, own, Gallery.of(own, enrolled), [5000.0], top_k=4)
    again = merge(others, evidence_of_one(np.einsum("ij,ij->i", enrolled, enrolled), own, [5000.0]))
    assert again.n_subjects == whole.n_subjects
    assert (again.top_index == whole.top_index).all()
    np.testing.assert_allclose(again.log_mass, whole.log_mass, rtol=1e-12)
    # With the own subject at a weight of 1, subtraction would have left nothing of this.
    assert np.isfinite(others.log_mass).all()
    assert (others.log_mass < whole.log_mass - 100).all()


def test_bounds_of_the_rest_of_the_gallery_hold_without_the_own_subject():
    rng = np.random.default_rng(1)
    enrolled, probes, own = unit(rng, 60, 16), unit(rng, 25, 16), rng.integers(60, size=25)
    gallery = Gallery.of(np.arange(60), enrolled)
    sharpness = [30.0, 3.0]

    def coarse(directions, block, a, **how):
        return scan_compressed(directions, compress(Gallery.of(np.arange(len(block)), block), "int8"), a, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MASKED_SUBJECTS", 7)
        exact = evidence_of_others(probes, own, gallery, sharpness, top_k=2)
        patch.setattr(module, "scan", coarse)
        patch.setattr(compressed, "LISTED", 4)
        seen = evidence_of_others(probes, own, gallery, sharpness, top_k=2)
    assert exact.precision is None
    off = np.abs(seen.log_mass - exact.log_mass)
    assert off.max() > 1e-7
    assert (off <= seen.precision.log_mass_bound + 1e-12).all()  # rounding of sums of 60 exponentials
    assert (np.abs(seen.mean_score - exact.mean_score) <= seen.precision.mean_score_bound + 1e-12).all()


def test_nobody_is_left_in_a_gallery_of_one():
    with pytest.raises(GalleryTooSmallError, match="at least 2"):
        evidence_of_others(np.eye(2)[:1], np.array([0]), Gallery.of(np.array([1]), np.eye(2)[:1]), [1.0])
