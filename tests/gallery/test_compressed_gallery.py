import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holue.artifact.artifact import content_digest
from holue.errors import (
    ArtifactError,
    CorruptArtifactError,
    InvalidEmbeddingsError,
    InvalidParameterError,
    NewerArtifactError,
)
from holue.gallery import compressed as module
from holue.gallery.compressed import FORMS, CompressedGallery, Form, compress, unpack_rows
from holue.gallery.compressed_file import load_compressed, save_compressed
from holue.gallery.gallery import Gallery


def unit(rng, *shape):  # type: ignore[no-untyped-def]
    x = rng.normal(size=shape)
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def unpacked(compressed: CompressedGallery):  # type: ignore[no-untyped-def]
    """What the codes stand for, in float64."""
    return np.concatenate([unpack_rows(part, np.arange(len(part))) for part in compressed.parts])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("at_once", [1, 7, 4096])
def test_errors_and_norms_bound_what_was_lost(monkeypatch: pytest.MonkeyPatch, form: Form, at_once: int) -> None:
    monkeypatch.setattr(module, "ROWS_COMPRESSED_AT_ONCE", at_once)
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
def test_versions_share_the_codes_of_a_segment_and_count_who_has_not_left(form: Form) -> None:
    rng = np.random.default_rng(2)
    gallery = Gallery.from_samples(unit(rng, 5000, 8), np.arange(5000)).enroll(unit(rng, 30, 8), np.arange(5000, 5030))
    compressed = compress(gallery, form)
    assert len(compressed) == 5030
    numbers = np.array([5029, 0, 4999, 5000])
    np.testing.assert_array_equal(
        compressed.errors_of(numbers), np.concatenate([part.errors for part in compressed.parts])[numbers]
    )
    left = gallery.remove([0, 5029])
    later = [form_of.of(part) for form_of, part in zip(compressed.parts, left.parts)]
    assert [part.n_living for part in later] == [4999, 29]
    assert all(one.codes is other.codes for one, other in zip(later, compressed.parts))


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidParameterError, match="'float16' or 'int8', got 'int4'"):
        compress(np.eye(2), "int4")  # type: ignore[arg-type]
    with pytest.raises(InvalidEmbeddingsError, match="int64"):
        compress(np.ones((2, 2), dtype=np.int64), "int8")  # type: ignore[arg-type]
    for wrong in (np.nan, np.inf, 3.0):
        with pytest.raises(InvalidEmbeddingsError, match="rows 0 to 1 hold coordinates that no unit vector has"):
            compress(np.array([[1.0, 0.0], [wrong, 0.0]]), "float16")


@pytest.mark.parametrize("form", FORMS)
def test_saved_and_loaded_it_is_the_same_and_its_exact_rows_are_mapped(tmp_path: Path, form: Form) -> None:
    rng = np.random.default_rng(3)
    gallery = unit(rng, 60, 20)
    compressed = compress(Gallery.of(np.arange(60), gallery[:45], gallery[45:]), form)
    loaded = load_compressed(save_compressed(compressed, tmp_path / "gallery"))
    assert (loaded.form, loaded.residual_norm) == (form, compressed.residual_norm)
    np.testing.assert_array_equal(unpacked(loaded), unpacked(compressed))
    for part, same in zip(loaded.parts, compressed.parts):
        assert isinstance(part.exact, np.memmap)
        np.testing.assert_array_equal(part.exact, same.exact)
        np.testing.assert_array_equal(part.errors, same.errors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gallery"]
    with pytest.raises(ArtifactError, match="exists already"):
        save_compressed(compressed, tmp_path / "gallery")


def test_changed_files_are_not_loaded(tmp_path: Path) -> None:
    gallery = unit(np.random.default_rng(4), 40, 16)
    saved = save_compressed(compress(gallery, "int8"), tmp_path / "g")
    codes, exact, manifest = saved / "codes-0.npy", saved / "exact-0.npy", saved / "manifest.json"
    kept = {path: path.read_bytes() for path in (codes, exact, manifest)}

    def refuses(error: type[Exception], match: str) -> None:
        with pytest.raises(error, match=match):
            load_compressed(saved)
        for path, content in kept.items():
            path.write_bytes(content)

    codes.write_bytes(kept[codes][:-1] + b"\x07")
    refuses(CorruptArtifactError, "codes-0.npy has changed")
    np.save(exact, gallery[::-1])
    refuses(CorruptArtifactError, "holds other rows")
    np.save(exact, gallery[1:])
    refuses(CorruptArtifactError, "has shape")
    exact.unlink()
    refuses(CorruptArtifactError, "exact-0.npy is missing")
    manifest.write_text("{")
    refuses(CorruptArtifactError, "cannot be read")
    described = json.loads(kept[manifest])
    manifest.write_text(json.dumps(described | {"version": 2}))
    refuses(NewerArtifactError, "version 2")
    described["content"]["parts"][0]["residual_norm"] /= 2
    manifest.write_text(json.dumps(described))
    refuses(CorruptArtifactError, "manifest.json has changed")
    manifest.write_text(json.dumps(described | {"kind": "recogniser"}))
    refuses(CorruptArtifactError, "does not describe")
    assert len(load_compressed(saved)) == 40


def save_earlier(compressed: CompressedGallery, folder: Path) -> None:
    """As galleries were saved before all directories had one form of manifest."""
    folder.mkdir()
    parts = []
    for number, part in enumerate(compressed.parts):
        for name in ("codes", "scales", "errors", "exact"):
            np.save(folder / f"{name}-{number}.npy", getattr(part, name))
        digests = {
            name: hashlib.sha256((folder / f"{name}-{number}.npy").read_bytes()).hexdigest()
            for name in ("codes", "scales", "errors")
        }
        norms = {"largest_norm": part.largest_norm, "residual_norm": part.residual_norm}
        parts.append({"rows": len(part), **norms, "sha256": digests})
    content = {"format": "holue", "kind": "compressed gallery", "version": 1, "form": compressed.form}
    content |= {"dim": compressed.dim, "parts": parts}
    (folder / "compressed.json").write_text(json.dumps(content | {"digest": content_digest(content)}))


def test_a_gallery_saved_by_an_earlier_version_is_read(tmp_path: Path) -> None:
    compressed = compress(unit(np.random.default_rng(5), 40, 20), "int8")
    save_earlier(compressed, tmp_path / "g")
    loaded = load_compressed(tmp_path / "g")
    np.testing.assert_array_equal(unpacked(loaded), unpacked(compressed))
    (tmp_path / "g" / "codes-0.npy").write_bytes(b"")
    with pytest.raises(CorruptArtifactError, match=r"codes-0.npy has changed"):
        load_compressed(tmp_path / "g")


@pytest.mark.parametrize(
    "edit",
    [
        ("codes", lambda x: x.astype(np.int16)),
        ("codes", lambda x: x[1:]),
        ("codes", lambda x: x + np.int8(1)),
        ("scales", lambda x: -x),
        ("scales", lambda x: x * np.nan),
        ("errors", lambda x: x * np.inf),
        ("errors", lambda x: x - 1),
        ("exact", lambda x: x * np.nan),
        ("exact", lambda x: 7 * x),
        ("exact", lambda x: -x),
        ("largest_norm", 0.5),
        ("largest_norm", None),
        ("residual_norm", 0.0),
        ("residual_norm", -1.0),
        ("rows", 39),
        ("dim", 12),
        ("dim", True),
        ("form", "int4"),
        ("parts", []),
    ],
    ids=lambda edit: edit[0],
)
def test_an_edit_with_valid_checksums_is_refused(tmp_path: Path, edit: tuple[str, Any]) -> None:
    name, change = edit
    saved = save_compressed(compress(unit(np.random.default_rng(6), 40, 20), "int8"), tmp_path / "g")
    manifest = json.loads((saved / "manifest.json").read_text())
    del manifest["digest"]
    content = manifest["content"]
    if callable(change):
        np.save(saved / f"{name}-0.npy", change(np.load(saved / f"{name}-0.npy")))
        manifest["files"][f"{name}-0.npy"] = hashlib.sha256((saved / f"{name}-0.npy").read_bytes()).hexdigest()
    else:
        (content if name in content else content["parts"][0])[name] = change
    (saved / "manifest.json").write_text(json.dumps(manifest | {"digest": content_digest(manifest)}))
    with pytest.raises(ArtifactError):
        load_compressed(saved)


@pytest.mark.parametrize("form", FORMS)
def test_few_long_rows_are_compressed_without_a_matrix_of_all_pairs_of_coordinates(form: Form) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 8192))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    tracemalloc.start()
    part = compress(rows, form).parts[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Some copies of the rows; 8 192² numbers would be 540 MB, and their eigenvalues most of a minute.
    assert peak < 20 * rows.nbytes
    residual = rows - unpack_rows(part, np.arange(20))
    largest = np.linalg.svd(residual, compute_uv=False)[0]
    assert largest <= part.residual_norm <= largest * (1 + 1e-5)


@pytest.mark.parametrize("n_rows", [15, 16, 17, 40])
@pytest.mark.parametrize("form", FORMS)
def test_the_norm_of_the_residuals_is_their_largest_singular_value(form: Form, n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    rows = rng.normal(size=(n_rows, 16))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    part = compress(rows, form).parts[0]
    largest = np.linalg.svd(rows - unpack_rows(part, np.arange(n_rows)), compute_uv=False)[0]
    assert largest <= part.residual_norm <= largest * (1 + 1e-5)
