"""The commands on a living gallery as a user meets them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.datasets.formats.parquet import read_parquet
from holue.datasets.simulated import simulate

runner = CliRunner()


def run(*words: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def told(*words: object, code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words, "--json", code=code))
    return found


@pytest.fixture
def files(tmp_path: Path) -> Path:
    world = simulate(n_subjects=60, enrolled_samples=3, concentration=150, rng=np.random.default_rng(0))
    names = np.array([f"s{subject}" for subject in world.gallery.person])
    fingerprint = np.asarray("f00d")
    np.savez(tmp_path / "people.npz", embeddings=world.gallery.X, subject_id=names, fingerprint=fingerprint)
    np.savez(tmp_path / "probes.npz", embeddings=world.probes.X, fingerprint=fingerprint)
    np.savez(tmp_path / "other.npz", embeddings=world.probes.X, fingerprint=np.asarray("beef"))
    return tmp_path


@pytest.fixture
def gallery(files: Path) -> Path:
    path = files / "office"
    run("create", path, "--like", files / "people.npz")
    run("enroll", path, files / "people.npz", "--by", "me")
    run("calibrate", path)
    return path


def test_a_gallery_is_created_filled_calibrated_and_asked(gallery: Path, files: Path) -> None:
    status = told("status", gallery)
    assert (status["subjects"], status["store"]["samples"], status["store"]["model"]) == (60, 180, "f00d")
    assert status["calibration"] == 1
    answers = told("identify", gallery, files / "probes.npz")
    assert answers["gallery_version"] == 1
    assert {"sample", "subject", "decision", "uncertainty", "reason", "candidates"} <= set(answers["answers"][0])
    assert "accepted" in run("identify", gallery, files / "probes.npz")


def test_answers_are_written_in_three_formats_that_agree(gallery: Path, files: Path) -> None:
    for suffix in ("csv", "jsonl", "parquet"):
        run("identify", gallery, files / "probes.npz", "--out", files / f"answers.{suffix}")
    lines = [json.loads(line) for line in (files / "answers.jsonl").read_text().splitlines()]
    with (files / "answers.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["subject"] or None for row in rows] == [line["subject"] for line in lines]
    assert [row["reason"] for row in rows] == [line["reason"] for line in lines]
    assert [float(row["probability_1"]) for row in rows] == [line["candidates"][0]["probability"] for line in lines]
    kept = read_parquet(files / "answers.parquet", required=["decision", "score_1"])
    assert kept["decision"].tolist() == [line["decision"] for line in lines]
    assert kept["score_1"].tolist() == [line["candidates"][0]["score"] for line in lines]
    assert "unknown kind of file" in str(
        runner.invoke(app, ["identify", str(gallery), str(files / "probes.npz"), "--out", "a.txt"]).exception
    )


def test_embeddings_of_another_model_are_refused(gallery: Path, files: Path) -> None:
    result = runner.invoke(app, ["identify", str(gallery), str(files / "other.npz")])
    assert "beef" in str(result.exception)


def test_removal_snapshot_erasure_and_restoring(gallery: Path, files: Path) -> None:
    assert told("snapshot", gallery, "monday")["version"] == 1
    assert told("remove", gallery, "s3", "s4")["subjects"] == 58
    assert told("restore", gallery / "snapshots" / "monday", files / "again")["subjects"] == 60
    receipt = told("erase", gallery, "s3")["receipt"]
    assert receipt["clean"]
    assert receipt["samples"] == 3
    assert told("restore", gallery / "snapshots" / "monday", files / "later")["subjects"] == 59
    log = told("log", gallery)
    assert [change["kind"] for change in log["changes"]] == ["enroll", "remove", "erase"]
    assert log["changes"][0]["by"] == "me"
    assert "version 2: remove" in run("log", gallery)
    assert told("identify", gallery, files / "probes.npz", "--version", 1)["gallery_version"] == 1


def test_upkeep_finds_damage_and_says_so(gallery: Path) -> None:
    assert told("compact", gallery)["after"]["subjects"] == 60
    assert told("verify", gallery) == {"problems": []}
    segment = next((gallery / "segments").glob("*.segment"))
    data = bytearray(segment.read_bytes())
    data[-3000] ^= 255
    segment.write_bytes(bytes(data))
    assert told("verify", gallery, code=1)["problems"][0]["subjects"]


def test_bad_rows_stop_all_or_are_listed(gallery: Path, files: Path) -> None:
    X = np.random.default_rng(1).standard_normal((3, np.load(files / "people.npz")["embeddings"].shape[1]))
    X[1] = np.nan
    np.savez(files / "bad.npz", embeddings=X, subject_id=np.array(["a", "b", "c"]))
    assert "row 1" in str(runner.invoke(app, ["enroll", str(gallery), str(files / "bad.npz")]).exception)
    assert told("status", gallery)["subjects"] == 60
    done = told("enroll", gallery, files / "bad.npz", "--skip-bad")
    assert (done["subjects"], [bad["row"] for bad in done["left_out"]]) == (2, [1])


def test_expired_subjects_are_listed_before_they_are_erased(gallery: Path) -> None:
    assert told("erase", gallery, "--expired", "--dry-run") == {"expired": [], "receipt": None}
    assert "one of the two" in str(runner.invoke(app, ["erase", str(gallery)]).exception)


def test_a_gallery_is_not_created_over_something(gallery: Path) -> None:
    assert "exists already" in str(runner.invoke(app, ["create", str(gallery), "--dim", "4"]).exception)
