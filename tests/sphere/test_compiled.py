"""Compiled code is cached wherever the package is installed, and code that has changed is never run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import holue
from holue.sphere import compiled


def test_where_nothing_can_be_cached_the_process_has_a_directory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> object:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(numba, "njit", refuse)
    assert not compiled.find_cache_directory()
    directory = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
    # Numba runs what it finds there: nobody else may put anything in.
    assert directory.stat().st_mode & 0o077 == 0
    directory.rmdir()


def test_a_directory_that_can_be_written_is_left_alone() -> None:
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    assert compiled.find_cache_directory()
    assert before == numba.config.CACHE_DIR  # type: ignore[attr-defined]


OUTER = """
from holue.sphere.compiled import njit
from holue.sphere.middle import halved

@njit(cache=True)
def outer(x):
    return halved(x) + 1
"""
MIDDLE = """
from holue.sphere import inner
from holue.sphere.compiled import njit

FACTOR = inner.FACTOR

@njit(cache=True)
def halved(x):
    return FACTOR * x
"""
USE = "from holue.sphere.outer import outer; print(outer(8.0), len(outer.stats.cache_hits))"


@pytest.mark.parametrize("elsewhere", [False, True], ids=["beside the source", "in NUMBA_CACHE_DIR"])
def test_a_change_in_an_imported_file_is_compiled_and_an_unchanged_one_is_not(tmp_path: Path, elsewhere: bool) -> None:
    package = tmp_path / "holue"
    shutil.copytree(Path(holue.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "sphere" / "outer.py").write_text(OUTER)
    (package / "sphere" / "middle.py").write_text(MIDDLE)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache") if elsewhere else ""

    def run(factor: str) -> list[str]:
        (package / "sphere" / "inner.py").write_text(f"FACTOR = {factor}\n")
        command = [sys.executable, "-c", USE]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, timeout=120
        ).stdout.split()

    assert run("0.5") == ["5.0", "0"]
    assert run("0.5") == ["5.0", "1"], "the second process finds the first one's code"
    assert run("0.25") == ["3.0", "0"], "the file two imports away has changed"
