"""A message names what a user of the command line can change: options, not parameters of Python."""

import json
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from holue.cli.app import app
from holue.cli.spelling import OPTIONS, spelled
from holue.datasets.simulated import simulate
from holue.errors import HolueError

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
runner = CliRunner()


@pytest.mark.parametrize(
    ("command", "said", "shown"),
    [
        ("trust", "bring them, or raise target_level", "bring them, or raise --target"),
        ("trust", "target_fpir=0.001 is finer", "--target-fpir 0.001 is finer"),
        ("audit", "target_fpir=0.001 is finer", "--fpir 0.001 is finer"),
        ("evaluate", "n_resamples must be a whole number", "--resamples must be a whole number"),
        ("trust", "or use method='galue' or 'acceptance'", "or use --method galue or 'acceptance'"),
        ("enroll", "skip_bad=True enrols the rest", "--skip-bad enrols the rest"),
        ("train", "another share, or held_out=0.", "another share, or --held-out 0."),
        ("split", "change known_share or development_share,", "change --known-share or --development-share,"),
    ],
)
def test_a_setting_is_written_as_the_option_of_the_command(command: str, said: str, shown: str) -> None:
    assert spelled(said, COMMANDS[command]) == shown


@pytest.mark.parametrize(
    "text",
    [
        "no method is sure at any risk, and the seed is the first target",  # words of English
        "runs/target_level/known_share.npz: no such file",  # a path
        "missing key 'target_fpir'",  # a key of a file
        "lower n_subjects or more_than",  # no option of this command
    ],
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert spelled(text, COMMANDS["trust"]) == text
    assert spelled(text, COMMANDS["split"]) == text


def test_every_name_that_is_translated_is_an_option_of_some_command() -> None:
    known = {parameter.name for command in COMMANDS.values() for parameter in command.params}
    assert set(OPTIONS.values()) <= known


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("samples") / "samples.npz"
    world = simulate(n_subjects=30, n_strangers=0, enrolled_samples=2, dim=16, rng=np.random.default_rng(0))
    np.savez(file, embeddings=world.gallery.X, subject_id=world.gallery.person)
    return file


@pytest.fixture(scope="module")
def split(samples: Path) -> Path:
    folder = samples.parent / "split"
    assert runner.invoke(app, ["split", str(samples), str(folder)]).exit_code == 0
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit", "FILE", "--fpir", "2"], "--fpir must lie strictly between 0 and 1, got 2.0"),
        (["gallery-growth", "FILE", "--fpir", "2"], "--fpir must lie strictly between 0 and 1, got 2.0"),
        (["gallery-growth", "FILE", "--first", "9999"], "growth from --first 9999 subjects needs at least 19998, got"),
        (["enroll", "nowhere", "FILE"], "give the directory of a gallery, or make a new one with holue create"),
        (["split", "FILE", "OUT", "--known-share", "3"], "--known-share must"),
        (["trust", "SPLIT", "--target", "2"], "--target must lie strictly between 0 and 1, got 2.0"),
        (["trust", "SPLIT", "--confidence", "2"], "--confidence must lie strictly between 0 and 1, got 2.0"),
        (["trust", "SPLIT", "--target-fpir", "1e-9"], "--target-fpir 1e-09 is finer"),
        (["trust", "SPLIT", "--groups"], "or leave --groups out"),
        (["trust", "SPLIT", "--method", "holue"], "--method holue reads the quality"),
        (["evaluate", "SPLIT", "--fpir", "1e-9"], "--fpir 1e-09 is finer"),
        (["evaluate", "SPLIT", "--resamples", "0"], "--resamples must be a whole number of at least 1, got 0"),
        (["evaluate", "SPLIT", "--unknown-prior", "2"], "--unknown-prior must lie strictly between 0 and 1, got 2.0"),
        (["evaluate", "SPLIT", "--max-rejection", "2"], "--max-rejection must"),
        (["evaluate", "SPLIT", "--threshold-from", "both"], "--threshold-from must be 'dev'"),
    ],
)
def test_an_error_of_a_command_names_its_option(words: list[str], message: str, samples: Path, split: Path) -> None:
    places = {"FILE": samples, "SPLIT": split, "OUT": samples.parent / "other"}
    error = runner.invoke(app, [str(places.get(word, word)) for word in words]).exception
    assert isinstance(error, HolueError)
    assert message in str(error)


def test_what_an_evaluation_could_not_control_names_its_option(split: Path) -> None:
    words = ["evaluate", str(split), "--trust", "--fpir", "0.08", "--methods", "galue", "--resamples", "10", "--json"]
    answer = json.loads(runner.invoke(app, words).stdout)
    assert answer["trust"]["refusal"].startswith("--fpir 0.08 is finer than")
