"""The glyph model is trained by one call, and the glyph experiment needs nothing but holue."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from holue.cli.app import app
from holue.datasets.glyphs.model import GlyphEmbedder, glyph_embedder
from holue.datasets.glyphs.world import glyphs_for
from holue.errors import InvalidParameterError
from holue.experiments.experiment import MAIN, NORM_ONLY, Size
from holue.experiments.sets.glyph_network import GlyphTraining, train_glyph_model
from holue.experiments.sets.glyphs import ENROLLED, glyph_protocols

TINY = GlyphTraining(epochs=1, clean=2, degraded=2, references=2, learning=5, glyphs=40)


def test_the_glyph_model_is_trained_exported_and_read_back(tmp_path: Path) -> None:
    record = train_glyph_model(tmp_path / "model", training=TINY)
    model = GlyphEmbedder.load(tmp_path / "model")
    assert model.record == json.loads(json.dumps(record))
    assert record["network_samples"] == 160
    assert record["network_glyphs"] == [glyph.label for glyph in glyphs_for("network")[:40]]
    assert 0 < record["evaluation"]["rank_1"]["all"] <= 1


def test_the_protocols_of_a_seed_share_no_glyph_and_know_their_levels(tmp_path: Path) -> None:
    protocols = glyph_protocols(glyph_embedder(), 1, Size(quick=True, cache_dir=tmp_path))
    assert list(protocols) == list(ENROLLED)
    main, norm = protocols[MAIN], protocols[NORM_ONLY]
    assert set(main.evaluation.qualities) == {"concentration", "pfe", "scale", "norm"}
    assert not np.intersect1d(main.development.probe_subjects, main.evaluation.probe_subjects).size
    assert main.evaluation.groups is not None
    assert "12 px" in {label.split(", ")[0] for label in main.evaluation.groups}
    assert (main.evaluation.probes.directions == norm.evaluation.probes.directions).all()
    assert (main.evaluation.qualities["concentration"] != norm.evaluation.qualities["concentration"]).any()


def test_the_command_refuses_what_glyphs_do_not_take() -> None:
    runner = CliRunner()
    for words in (["glyphs", "faces.npz"], ["glyphs", "--hidden", "8"]):
        result = runner.invoke(app, ["train", *words, "--out", "model"])
        assert isinstance(result.exception, InvalidParameterError)
    result = runner.invoke(app, ["train", "scf", "--out", "head"])
    assert isinstance(result.exception, InvalidParameterError)
    assert "FILE is missing" in str(result.exception)
