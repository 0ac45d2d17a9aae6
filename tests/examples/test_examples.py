"""The examples run from top to bottom: on real data where it is, in the glyph world where it is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holue.datasets.directory import data_directory
from holue.embedding.models.specification import preset

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("faces", "speakers", "animals")
RUN = """
import importlib, sys
sys.path.insert(0, {folder!r})
for name, settings in {examples!r}.items():
    module = importlib.import_module(name)
    vars(module).update(settings)
    module.main()
"""
"""In one process: the glyph world is made once, and a setting may make an example shorter."""


def run(examples: dict[str, dict[str, int]], folder: Path, **environment: str) -> str:
    command = [sys.executable, "-c", RUN.format(folder=str(EXAMPLES), examples=examples)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", **environment}
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_tells_and_draws(name: str, told: str, folder: Path) -> None:
    assert "operating point" in told
    assert f"Picture: {Path('runs') / name}.png" in told
    assert (folder / "runs" / f"{name}.png").stat().st_size > 10_000


def test_without_data_the_glyph_world_stands_in(tmp_path: Path) -> None:
    told = run({name: {} for name in NAMES}, tmp_path, HOLUE_DATA=str(tmp_path))
    assert told.count("Not here: ") == len([line for line in told.splitlines() if "HOLUE_DATA" in line]) == 3
    for name in NAMES:
        assert_tells_and_draws(name, told, tmp_path)


@pytest.mark.data
def test_real_faces_are_recognised_with_fewer_of_them(tmp_path: Path) -> None:
    if not ((data_directory() / "lfw" / "aligned112.zip").exists() and preset("arcface").path.exists()):
        pytest.skip("needs LFW and the model arcface; set HOLUE_DATA and HOLUE_MODELS")
    told = run({"faces": {"PEOPLE": 40, "STRANGERS": 48}}, tmp_path, HOLUE_CACHE=str(tmp_path / "cache"))
    assert "Not here" not in told
    assert_tells_and_draws("faces", told, tmp_path)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_enough_to_read(script: Path) -> None:
    lines = script.read_text("utf-8").count("\n")
    assert lines <= (180 if script.stem == "common" else 125)
