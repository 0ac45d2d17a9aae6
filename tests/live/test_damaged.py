"""A damaged gallery is served on request, and says that its answers are incomplete."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import holue
from holue.cli.app import app
from holue.errors import CorruptStoreError, InvalidParameterError
from holue.gallery.subjects import UNKNOWN

DAMAGE = ("gone", "cut", "flipped")


@pytest.fixture
def two_files(tmp_path: Path, people: Any) -> str:
    """Twenty subjects in one segment file and twenty in the database; the threshold is given."""
    home = str(tmp_path / "gallery")
    with holue.open(home, create=True, dim=people.dim, method="galue", threshold=0.6) as gallery:
        gallery.enroll(*people.several(range(20), 3))
        gallery.compact()
        gallery.enroll(*people.several(range(20, 40), 3))
    return home


def damage(home: str, how: str) -> None:
    """Of the segment file: all of it, its second half, or one bit of the first row."""
    (segment,) = Path(home, "segments").iterdir()
    if how == "gone":
        segment.unlink()
    elif how == "cut":
        os.truncate(segment, segment.stat().st_size // 2)
    else:
        data = bytearray(segment.read_bytes())
        data[-60 * 16 * 4] ^= 1  # the rows are the last bytes
        segment.write_bytes(data)


@pytest.mark.parametrize("how", DAMAGE)
def test_answers_of_a_damaged_gallery_are_incomplete_and_say_who_is_missing(
    two_files: str, people: Any, how: str
) -> None:
    damage(two_files, how)
    if how != "flipped":  # a flipped bit is found by reading every byte, which opening does not do
        with pytest.raises(CorruptStoreError, match="damaged='serve'"):
            holue.open(two_files)
    with holue.open(two_files, read_only=True, damaged="serve") as gallery:
        answers = gallery.identify(people.probes())
        assert set(answers.decision) == {"incomplete"}
        assert answers.incomplete.all()
        assert not (answers.rejected | answers.accepted | answers.filtered).any()
        assert UNKNOWN not in answers.subject.tolist()
        lost = 1 if how == "flipped" else 20
        assert answers[25].candidates[0].subject == "p25"
        assert f"{lost} of 40 enrolled subjects" in answers[0].reason
        status = gallery.status()
        assert status.missing == tuple(range(1, lost + 1))
        assert status.damage[0].file.startswith("segments/")
        assert len(gallery) == (40 if how == "flipped" else 20)


def test_a_subject_that_lost_one_of_its_samples_is_missing_in_part(two_files: str, people: Any) -> None:
    damage(two_files, "flipped")
    with holue.open(two_files, read_only=True, damaged="serve") as gallery:
        assert gallery.current.missing.subjects == (1,)
        assert gallery.identify(people.samples(0, 1)).decision.tolist() == ["incomplete"]


def test_a_past_version_of_a_damaged_gallery_names_who_is_missing_in_it(two_files: str, people: Any) -> None:
    with holue.open(two_files) as gallery:
        gallery.remove(["p0"])
    damage(two_files, "gone")
    with holue.open(two_files, read_only=True, damaged="serve") as gallery:
        assert gallery.current.missing.subjects == tuple(range(2, 21))
        assert gallery.at(2).missing.subjects == tuple(range(1, 21))
        assert set(gallery.at(2).identify(people.probes()).decision) == {"incomplete"}


def test_a_gallery_without_damage_answers_as_ever_when_asked_to_serve_a_damaged_one(
    two_files: str, people: Any
) -> None:
    with holue.open(two_files, read_only=True) as gallery:
        expected = gallery.identify(people.probes())
    with holue.open(two_files, read_only=True, damaged="serve") as gallery:
        answers = gallery.identify(people.probes())
        assert gallery.status().missing == ()
    assert answers.decision.tolist() == expected.decision.tolist()
    assert answers.score.tolist() == expected.score.tolist()


def test_acknowledged_changes_that_are_lost_make_answers_incomplete(two_files: str, people: Any) -> None:
    from holue.store.sqlite.files.disk import Disk
    from holue.store.sqlite.files.head import HEAD, write_head

    write_head(Disk(), Path(two_files) / HEAD, 9)
    with holue.open(two_files, read_only=True, damaged="serve") as gallery:
        answers = gallery.identify(people.probes())
        assert set(answers.decision) == {"incomplete"}
        assert "version 9 was acknowledged" in answers[0].reason


def test_a_damaged_gallery_is_only_read(two_files: str) -> None:
    with pytest.raises(InvalidParameterError, match="read_only=True"):
        holue.open(two_files, damaged="serve")
    with pytest.raises(InvalidParameterError, match="'refuse' or 'serve'"):
        holue.open(two_files, read_only=True, damaged="fix")


def test_the_command_says_incomplete_and_who_is_missing(two_files: str, people: Any, tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "probes.npz", embeddings=people.probes())
    damage(two_files, "gone")
    run = CliRunner().invoke
    refused = run(app, ["identify", two_files, str(tmp_path / "probes.npz")])
    assert refused.exit_code != 0
    asked = ["identify", two_files, str(tmp_path / "probes.npz"), "--damaged", "serve"]
    found = json.loads(run(app, [*asked, "--json"]).stdout)
    assert {answer["decision"] for answer in found["answers"]} == {"incomplete"}
    assert {answer["subject"] for answer in found["answers"]} == {None}
    assert found["missing"] == list(range(1, 21))
    said = run(app, asked).stdout
    assert "30 incomplete" in said
    status = run(app, ["status", two_files, "--damaged", "serve"]).stdout
    assert "missing: 20 subjects" in status
