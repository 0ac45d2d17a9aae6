"""Concentrations from the length of embeddings, by command: `holue train norm`, then `holue apply`."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.artifact.archive import read_archive
from holue.cli.app import app
from holue.datasets.formats.samples import read_samples
from holue.embedding.heads.apply import load_head
from holue.embedding.heads.norm_concentration import NormConcentration
from holue.embedding.heads.norm_head import NormHead
from holue.errors import (
    CalibrationDataError,
    CorruptArtifactError,
    InvalidEmbeddingsError,
    InvalidParameterError,
    InvalidSubjectsError,
    NewerArtifactError,
)
from holue.sphere.vmf import sample

runner = CliRunner()
DIM, SUBJECTS, EACH = 32, 40, 6


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Forty subjects whose longer embeddings are closer to their centre, one subject with one sample; no sample ids."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((SUBJECTS, DIM))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows = np.repeat(np.arange(SUBJECTS), EACH)
    lengths = np.exp(rng.normal(3.0, 0.3, len(rows)))
    embeddings = lengths[:, None] * sample(centres[rows], lengths**1.5, rng)
    path = tmp_path / "others.npz"
    names = np.append(rows.astype(str), "alone")
    np.savez(
        path, embeddings=np.vstack([embeddings, embeddings[:1]]), subject_id=names, fingerprint="f00d", camera=names
    )
    return path


def run(*words: object) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_the_command_fits_what_python_fits_and_apply_adds_it(file: Path, tmp_path: Path) -> None:
    told = json.loads(run("train", "norm", file, "--out", tmp_path / "norm-1.2", "--json"))
    before = read_archive(file)
    law = NormConcentration.fit(before["embeddings"][:-1], before["subject_id"][:-1])
    assert (told["intercept"], told["slope"], told["dim"]) == (law.intercept, law.slope, DIM)
    assert told["details"] == {"samples": SUBJECTS * EACH, "subjects": SUBJECTS, "subjects_left_out": 1}
    assert told["json"] == str(tmp_path / "norm-1.2.json")

    out = tmp_path / "new.npz"
    applied = json.loads(run("apply", tmp_path / "norm-1.2", file, "--out", out, "--json"))
    assert (applied["kind"], applied["output"], applied["shape"]) == ("norm", "concentration", [SUBJECTS * EACH + 1])
    after = read_archive(out)
    assert set(after) == {*before, "concentration"}
    np.testing.assert_array_equal(after["concentration"], law.transform(before["embeddings"]).astype(np.float32))
    assert read_samples(out).concentration is not None, "the other commands read it"


def test_a_line_says_the_law_and_what_comes_next(file: Path, tmp_path: Path) -> None:
    lines = run("train", "norm", file, "--out", tmp_path / "norm").splitlines()
    assert lines[0].startswith("κ = ")
    assert lines[0].endswith(f"fitted to 240 samples of 40 subjects, written to {tmp_path / 'norm.json'}")
    assert lines[1].startswith("Left out: 1 subjects with one sample")
    assert lines[2] == f"Next: holue apply {tmp_path / 'norm.json'} FILE --out OUT.npz"
    assert run("apply", tmp_path / "norm.json", file, "--out", tmp_path / "with.npz").startswith(
        "concentration of 241 samples, median "
    )


def test_scaled_embeddings_and_single_samples_are_refused(file: Path, tmp_path: Path) -> None:
    arrays = read_archive(file)
    unit = arrays["embeddings"] / np.linalg.norm(arrays["embeddings"], axis=1, keepdims=True)
    np.savez(tmp_path / "unit.npz", **(arrays | {"embeddings": unit.astype(np.float16)}))
    with pytest.raises(
        CalibrationDataError, match=r"all embeddings have the same length, 1, .* before they are scaled"
    ):
        run("train", "norm", tmp_path / "unit.npz", "--out", tmp_path / "norm")
    np.savez(tmp_path / "single.npz", **(arrays | {"subject_id": np.arange(len(unit))}))
    with pytest.raises(InvalidSubjectsError, match="each of the 241 subjects in subject_id has one sample"):
        run("train", "norm", tmp_path / "single.npz", "--out", tmp_path / "norm")
    assert not (tmp_path / "norm.json").exists()


def test_options_of_networks_are_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="leave out --hidden and --checkpoints"):
        run("train", "norm", file, "--out", tmp_path / "norm", "--hidden", 8)


def test_a_law_is_for_its_own_recogniser(file: Path, tmp_path: Path) -> None:
    run("train", "norm", file, "--out", tmp_path / "norm")
    np.savez(tmp_path / "other.npz", **(read_archive(file) | {"fingerprint": np.asarray("beef")}))
    with pytest.raises(InvalidEmbeddingsError, match=r"norm.json was fitted on the recogniser f00d, .* of beef"):
        run("apply", tmp_path / "norm", tmp_path / "other.npz", "--out", tmp_path / "new.npz")
    assert not (tmp_path / "new.npz").exists()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"format": 2}, NewerArtifactError),
        ({"slope": "steep"}, CorruptArtifactError),
        ({"dim": 1}, CorruptArtifactError),
    ],
)
def test_a_record_that_cannot_be_read_is_named(
    change: dict[str, object], error: type[Exception], file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "norm.json"
    run("train", "norm", file, "--out", path)
    assert isinstance(load_head(path), NormHead)
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(error, match=r"norm\.json"):
        load_head(path)


@pytest.mark.data
def test_real_faces_get_concentrations_that_order_them_by_how_close_they_are(
    real_data: Callable[[str], Path], tmp_path: Path
) -> None:
    arrays = read_archive(real_data("lfw/arcface_mbf.npz"))
    people = np.unique(arrays["subject_id"])
    first = np.isin(arrays["subject_id"], people[::2])
    keys = ("embeddings", "subject_id")
    np.savez(tmp_path / "others.npz", **{key: arrays[key][first] for key in keys})
    np.savez(tmp_path / "mine.npz", **{key: arrays[key][~first] for key in keys})
    told = json.loads(run("train", "norm", tmp_path / "others.npz", "--out", tmp_path / "norm", "--json"))
    assert told["slope"] > 1, "ArcFace gives poor faces short embeddings"
    run("apply", tmp_path / "norm", tmp_path / "mine.npz", "--out", tmp_path / "with.npz")
    from scipy.stats import spearmanr

    from holue.embedding.training.class_centres import in_genuine_pairs, leave_one_out_cosines

    mine = read_archive(tmp_path / "with.npz")
    paired = in_genuine_pairs(mine["subject_id"])
    cosines = leave_one_out_cosines(mine["embeddings"][paired], mine["subject_id"][paired])
    assert spearmanr(mine["concentration"][paired], cosines).statistic > 0.1, "on people it was not fitted on"
