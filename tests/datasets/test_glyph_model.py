"""The shipped model is the one its record describes, knows glyphs it never saw, and sees which samples are poor."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("onnxruntime")

from holue.datasets.degradation import ImageLevels
from holue.datasets.glyphs.model import FOLDER, GlyphEmbedder, glyph_embedder, model_files
from holue.datasets.glyphs.rendering import render
from holue.datasets.glyphs.samples import draw_samples
from holue.datasets.glyphs.world import glyph_world, glyphs_for
from holue.errors import CorruptArtifactError, InvalidInputError


def test_the_model_is_small_and_says_how_it_was_made() -> None:
    record = glyph_embedder().record
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3_000_000
    assert record["command"].startswith("holue train glyphs --seed")
    assert {"torch", "matplotlib", "pillow"} <= record["versions"].keys()
    assert set(record["sha256"]) == set(model_files())


def test_the_glyphs_it_learnt_from_are_in_no_task() -> None:
    record = glyph_embedder().record
    trained = {*record["network_glyphs"], *record["head_glyphs"]}
    tasks = {text for glyph in glyphs_for("tasks") for text in glyph.characters}
    assert len(trained) > 1000
    assert not trained & tasks


def test_it_recognises_most_glyphs_it_never_saw_and_not_all() -> None:
    part = glyph_world(seed=11, subjects=60).evaluation
    gallery, probes = (glyph_embedder().embed(samples) for samples in (part.gallery, part.probes))
    labels = np.unique(gallery.subject_id)
    centres = np.stack([gallery.directions[gallery.subject_id == label].mean(axis=0) for label in labels])
    right = labels[(probes.directions @ centres.T).argmax(axis=1)] == probes.subject_id
    mated = np.isin(probes.subject_id, labels)
    assert 0.6 < right[mated].mean() < 0.99
    assert not right[~mated].any()


def test_every_quality_is_lower_for_poor_samples() -> None:
    some = glyphs_for("tasks")[::10]
    poor = ImageLevels((11,), (1.2,), (50.0,), (0.1,), sizes_only=0.0)
    good, bad = (glyph_embedder().embed(draw_samples(some, 2, seed=0, levels=levels)) for levels in (None, poor))
    for name in ("concentration", "pfe", "scale"):
        assert np.median(good.qualities[name]) > np.median(bad.qualities[name]), name
    assert np.median(good.norm_concentration) > np.median(bad.norm_concentration)


def test_bare_images_are_embedded_like_samples() -> None:
    samples = draw_samples(glyphs_for("tasks")[:4], 1, seed=0)
    named, bare = glyph_embedder().embed(samples), glyph_embedder().embed(samples.images)
    assert (named.directions == bare.directions).all()
    assert len(named) == 4
    with pytest.raises(InvalidInputError, match=r"shape \(n, 32, 32\)"):
        glyph_embedder().embed(render("A"))


def test_a_changed_or_missing_file_is_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    GlyphEmbedder.load(folder)
    (folder / "scf.json").write_text((folder / "scf.json").read_text() + " ")
    with pytest.raises(CorruptArtifactError, match=r"scf\.json"):
        GlyphEmbedder.load(folder)
    shutil.copy(FOLDER / "scf.json", folder)
    (folder / "network.onnx").unlink()
    with pytest.raises(CorruptArtifactError, match=r"network\.onnx"):
        GlyphEmbedder.load(folder)
    record = json.loads((folder / "model.json").read_text("utf-8"))
    del record["sha256"]["pfe.onnx"]
    (folder / "model.json").write_text(json.dumps(record))
    with pytest.raises(CorruptArtifactError, match=r"no checksum of pfe\.onnx"):
        GlyphEmbedder.load(folder)
    with pytest.raises(CorruptArtifactError, match="holue train glyphs"):
        GlyphEmbedder.load(tmp_path)


def test_it_runs_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert len(GlyphEmbedder.load(FOLDER).embed(np.stack([render("A")]))) == 1
