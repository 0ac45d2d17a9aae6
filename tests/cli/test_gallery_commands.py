"""The commands on a living gallery as a user meets them."""

from __future__ import annotations

import csv
import json
import sqlite3
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
    result = runner.invoke(app, [str(word) for word in (*words, "--json")])
    assert result.exit_code == code, (result.output, result.exception)
    found: dict[str, Any] = json.loads(result.stdout)  # warnings are on standard error
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


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_plain_line_that_names_the_options(files: Path) -> None:
    run("create", files / "office", "--like", files / "people.npz", "--fpir", "0.02")
    run("enroll", files / "office", files / "people.npz")
    result = runner.invoke(app, ["calibrate", str(files / "office")])
    (line,) = [line for line in result.stderr.splitlines() if line]
    said = "--fpir 0.02 cannot be resolved with strangers of "
    assert line.startswith(f"warning: {said}"), "no file, no line of code, no name of a class"
    assert line.endswith("; --fpir-confidence chooses a threshold with a margin")
    assert said in run("status", files / "office")


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


def test_a_gallery_keeps_pictures_only_where_it_was_created_to(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    from holue.service.ledger.ledger import Ledger

    for name, words in (("plain", []), ("kept", ["--keep-images"])):
        run("create", tmp_path / name, "--dim", 8, *words)
        with Ledger.open(tmp_path / name) as ledger:
            assert ledger.images.kept is bool(words)


def test_a_gallery_is_not_created_over_something(gallery: Path) -> None:
    assert "exists already" in str(runner.invoke(app, ["create", str(gallery), "--dim", "4"]).exception)


def refusal(*words: object) -> str:
    return str(runner.invoke(app, [str(word) for word in words]).exception)


@pytest.mark.parametrize("setting", [("--method", "holueplus"), ("--fpir", "5"), ("--search", "exakt")], ids=str)
def test_a_wrong_setting_creates_nothing(setting: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "office"
    assert setting[1] in refusal("create", path, "--dim", 4, *setting)
    assert not path.exists()
    run("create", path, "--dim", 4)


def test_errors_name_the_options_and_commands_that_help(gallery: Path, files: Path) -> None:
    assert "give --add or --replace" in refusal("enroll", gallery, files / "people.npz")
    assert "give --add or --replace" in run("enroll", gallery, files / "people.npz", "--skip-bad")
    run("create", files / "new", "--like", files / "people.npz")
    run("enroll", files / "new", files / "people.npz")
    assert f"holue calibrate {files / 'new'}" in refusal("identify", files / "new", files / "probes.npz")
    (files / "people.txt").write_text("1,2\n")
    assert "np.savez" in refusal("enroll", gallery, files / "people.txt")


def test_a_gallery_of_one_sample_each_is_told_to_bring_probes(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", embeddings=np.eye(6), subject_id=list("abcdef"))
    run("create", tmp_path / "home", "--dim", 6)
    run("enroll", tmp_path / "home", tmp_path / "one.npz")
    refused = runner.invoke(app, ["calibrate", str(tmp_path / "home")])
    assert "so there are no mated probes; give --probes, or enrol a second sample" in str(refused.exception)


def test_an_erasure_that_leaves_the_bytes_with_another_subject_names_the_files(gallery: Path, files: Path) -> None:
    one = np.load(files / "people.npz")
    np.savez(files / "twin.npz", embeddings=one["embeddings"][:1], subject_id=np.array(["twin"]))
    run("enroll", gallery, files / "twin.npz")
    said = run("erase", gallery, "twin", code=1)
    assert "1 sample erased" in said
    assert "gallery.db" in said
    assert "another subject" in said


def test_the_log_reads_as_sentences(gallery: Path) -> None:
    run("snapshot", gallery, "monday")
    run("remove", gallery, "s3")
    log = run("log", gallery)
    assert "calibration 1 kept" in log
    assert "snapshot monday made" in log
    assert "remove, 1 subject" in log
    assert "put_artifact" not in log
    assert "1 subjects" not in log


def test_the_audit_log_is_verified_and_exported(gallery: Path, tmp_path: Path) -> None:
    from holue.service.ledger.audit.audit_chain import Event
    from holue.service.ledger.ledger import Ledger

    assert "never served" in str(runner.invoke(app, ["log", str(gallery), "--verify"]).exception)
    with Ledger.open(gallery) as ledger:
        ledger.audit_log.append([Event("identify", "aa/operator", f"r{n}", 1.0, 2.0) for n in range(4)])
    told_of = told("log", gallery, "--verify", "--export", tmp_path / "log.jsonl")
    assert (told_of["rows"], told_of["problems"]) == (4, [])
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 4
    assert "no row was changed" in run("log", gallery, "--verify", "--head", told_of["head"])
    assert "no damage" in run("verify", gallery)
    with sqlite3.connect(gallery / "service" / "ledger.db") as connection:
        connection.execute("UPDATE audit SET actor = 'bb/operator' WHERE sequence = 3")
    assert "row 3 was changed" in run("log", gallery, "--verify", code=1)
    assert told("log", gallery, "--verify", code=1)["problems"][0]["sequence"] == 3
    assert "row 3 was changed" in run("verify", gallery, code=1)
    assert "give --verify" in str(runner.invoke(app, ["log", str(gallery), "--head", "1:ab"]).exception)


def test_erasing_reaches_the_ledger_of_the_service(gallery: Path, files: Path) -> None:
    from holue.service.ledger.ledger import Ledger

    with np.load(files / "people.npz") as people:
        own = people["embeddings"][people["subject_id"] == "s3"].astype(np.float32)
    with Ledger.open(gallery, keep_strangers=1000.0) as ledger:
        ledger.strangers.add(own, request_id="r", model=None)
    receipt = told("erase", gallery, "s3")["receipt"]
    assert receipt["clean"]
    assert "service/ledger.db" in {file["file"] for file in receipt["files"]}


@pytest.fixture
def tables(files: Path) -> Path:
    """The same people and probes as CSV files."""
    for name, ids in (("people", "subject_id"), ("probes", None)):
        with np.load(files / f"{name}.npz") as archive:
            X = archive["embeddings"]
            rows = [[] if ids is None else [subject] for subject in (archive[ids] if ids else X)]
        head = ([ids] if ids else []) + [f"x{i}" for i in range(X.shape[1])]
        with (files / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([head, *([*row, *map(repr, map(float, x))] for row, x in zip(rows, X))])
    return files


def test_csv_files_are_enrolled_and_identified_like_arrays(tables: Path) -> None:
    answers = {}
    for kind in ("npz", "csv"):
        home = tables / f"from-{kind}"
        run("create", home, "--like", tables / f"people.{kind}", "--threshold", 0.5, "--method", "galue")
        assert told("enroll", home, tables / f"people.{kind}")["samples"] == 180
        answers[kind] = told("identify", home, tables / f"probes.{kind}")["answers"]
    assert answers["csv"] == answers["npz"]


def test_ids_of_a_csv_file_are_integers_where_the_gallery_has_integers(tables: Path) -> None:
    home = tables / "home"
    run("create", home, "--dim", 2, "--threshold", 0.5, "--method", "galue")
    np.savez(tables / "two.npz", embeddings=np.eye(2), subject_id=[1, 2])
    run("enroll", home, tables / "two.npz")
    (tables / "more.csv").write_text("subject_id,a,b\n3,0.5,0.5\n")
    run("enroll", home, tables / "more.csv")
    assert told("status", home)["subjects"] == 3


def test_a_cell_that_is_no_number_is_named(tables: Path) -> None:
    home = tables / "home"
    run("create", home, "--dim", 2)
    (tables / "bad.csv").write_text("subject_id,a,b\nann,0.5,0.5\nbob,x,0.5\n")
    refused = runner.invoke(app, ["enroll", str(home), str(tables / "bad.csv")])
    assert "line 3, column 'a' holds 'x'" in str(refused.exception)
    left = told("enroll", home, tables / "bad.csv", "--skip-bad")["left_out"]
    assert [bad["row"] for bad in left] == [1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("subject_id,a,b\nann\0,0.5,0.5\n", "line 2, column 'subject_id' holds the character NUL"),
        ("subject_id;a;b\nann;0.5;0.5\n", "the columns are subject_id;a;b; separate the columns by commas"),
        ('subject_id,a,b\n"ann\nlee",0.5,0.5\n\nbob,x,0.5\n', "line 5, column 'a' holds 'x'"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    run("create", tmp_path / "home", "--dim", 2)
    (tmp_path / "bad.csv").write_bytes(text.encode())
    refused = runner.invoke(app, ["enroll", str(tmp_path / "home"), str(tmp_path / "bad.csv")])
    assert said in str(refused.exception)
    assert told("status", tmp_path / "home")["subjects"] == 0


def test_empty_lines_of_a_csv_file_are_no_samples(tmp_path: Path) -> None:
    run("create", tmp_path / "home", "--dim", 2)
    (tmp_path / "people.csv").write_text("subject_id,a,b\n\nann,0.5,0.5\n\n")
    assert "1 sample of 1 subject; the gallery holds 1 subject" in run(
        "enroll", tmp_path / "home", tmp_path / "people.csv"
    )


def test_progress_is_shown_on_a_terminal_only_and_never_beside_json(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holue import progress

    shown = []
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("rich.progress.Progress.add_task", lambda self, title, **_: shown.append(title))
    with progress.working("verifying"):
        pass
    with progress.working("compacting", quiet=True):
        pass
    assert shown == ["verifying"]
