"""Compiled code has a place to be kept, wherever the package is installed."""

from pathlib import Path

import numba
import pytest

from holue.sphere import compiled


def test_where_nothing_can_be_kept_the_process_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> object:
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(compiled, "njit", refuse)
    compiled.find_place()
    place = Path(numba.config.CACHE_DIR)  # type: ignore[attr-defined]
    # Numba runs what it finds there: nobody else may put anything in.
    assert place.stat().st_mode & 0o077 == 0
    place.rmdir()


def test_a_place_that_can_be_written_is_left_alone() -> None:
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    compiled.find_place()
    assert before == numba.config.CACHE_DIR  # type: ignore[attr-defined]
