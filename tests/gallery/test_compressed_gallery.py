import numpy as np
import pytest

from holue.errors import InvalidEmbeddingsError, InvalidParameterError
from holue.gallery import compressed as module
from holue.gallery.compressed import FORMS, CompressedGallery, Form, compress
from holue.gallery.gallery import Gallery


def unit(rng, *shape):  # type: ignore[no-untyped-def]
    x = rng.normal(size=shape)
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def unpacked(compressed: CompressedGallery):  # type: ignore[no-untyped-def]
    """What the codes stand for, in float64."""
    rows = [
        part.scales[:, None].astype(np.float64)
        * (part.codes.view(np.float16) if compressed.form == "float16" else part.codes).astype(np.float64)
        for part in compressed.parts
    ]
    return np.concatenate(rows)[:, : compressed.dim]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("at_once", [1, 7, 4096])
def test_errors_and_norms_bound_what_was_lost(monkeypatch: pytest.MonkeyPatch, form: Form, at_once: int) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    gallery = unit(rng, 50, 23)
    gallery[3] = np.eye(23)[4]
    gallery[4] = 0  # no direction, and still no harm
    compressed = compress(gallery, form)
    residual = gallery - unpacked(compressed)
    lengths = np.linalg.norm(residual, axis=1)
    errors = compressed.parts[0].errors
    assert (lengths <= errors).all()
    np.testing.assert_allclose(errors, lengths, rtol=1e-5, atol=1e-30)
    assert lengths[3] < 1e-8, "a row of one coordinate is kept but for the rounding of its scale"
    assert np.linalg.norm(residual, 2) <= compressed.residual_norm <= 1.0001 * np.linalg.norm(residual, 2) + 1e-11
    assert np.linalg.norm(unpacked(compressed), axis=1).max() <= compressed.largest_norm < 1.02


def test_bytes_are_a_half_and_a_quarter() -> None:
    gallery = unit(np.random.default_rng(1), 100, 64)
    beside = 8 * 100  # scale and error
    assert compress(gallery, "float16").nbytes == gallery.nbytes // 2 + beside
    assert compress(gallery, "int8").nbytes == gallery.nbytes // 4 + beside


@pytest.mark.parametrize("form", FORMS)
def test_enrolling_compresses_only_what_is_new(form: Form) -> None:
    rng = np.random.default_rng(2)
    first, second = unit(rng, 5000, 8), unit(rng, 30, 8)
    gallery = Gallery.from_samples(first, np.arange(5000))
    compressed = compress(gallery, form)
    grown = gallery.enroll(second, np.arange(5000, 5030))
    followed = compressed.follow(grown)
    assert followed.parts[0] is compressed.parts[0]
    assert len(followed) == 5030
    afresh = compress(grown, form)
    np.testing.assert_array_equal(unpacked(followed), unpacked(afresh))
    rows = np.array([5029, 0, 4999, 5000])
    np.testing.assert_array_equal(followed.exact_rows(rows), grown.directions[rows])
    np.testing.assert_array_equal(
        followed.errors_of(rows), np.concatenate([part.errors for part in followed.parts])[rows]
    )
    left = grown.remove([0])
    assert len(followed.follow(left)) == 5029


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidParameterError, match="'float16' or 'int8', got 'int4'"):
        compress(np.eye(2), "int4")  # type: ignore[arg-type]
    with pytest.raises(InvalidEmbeddingsError, match="int64"):
        compress(np.ones((2, 2), dtype=np.int64), "int8")  # type: ignore[arg-type]
    for wrong in (np.nan, np.inf, 3.0):
        with pytest.raises(InvalidEmbeddingsError, match="rows 0 to 1 hold coordinates that no unit vector has"):
            compress(np.array([[1.0, 0.0], [wrong, 0.0]]), "float16")
