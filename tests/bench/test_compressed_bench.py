from dataclasses import replace
from typing import Any

import pytest

from holue.bench.page.compressed_page import compressed_part
from holue.bench.sections import compressed
from holue.bench.sections.compressed import MOST_SCORES, as_text, compressed_steps
from holue.bench.worlds.sizes import QUICK


def test_every_form_is_measured_beside_float32_with_its_bytes_and_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "missing", lambda _: "not here")
    sizes = replace(QUICK, compressed_shapes=((300, 32),), compressed_batches=(1, 3), threads=(1,), pause=0.0)
    result: dict[str, Any] = {}
    for _, measure in compressed_steps(result, sizes, 2, 0):
        measure()
    rows = result["compressed"]
    assert [row["system"] for row in rows] == ["holue", "holue float16", "holue int8"] * 2
    assert {row["times_faster"] for row in rows if row["system"] == "holue"} == {1.0}
    assert [round(row["gallery_mb"] * 1e6) for row in rows[:3]] == [300 * 128, 300 * 72, 300 * 40]
    assert all(len(row["largest_log_mass_bound"]) == 2 for row in rows if row["system"] != "holue")
    assert len(as_text(rows).splitlines()) == 7


def test_faiss_takes_its_turn_where_it_is_installed_and_the_page_shows_it() -> None:
    pytest.importorskip("faiss")
    sizes = replace(QUICK, compressed_shapes=((300, 32),), compressed_batches=(1,), threads=(1,), pause=0.0)
    result: dict[str, Any] = {}
    for _, measure in compressed_steps(result, sizes, 2, 0):
        measure()
    rows = result["compressed"]
    assert rows[-1]["system"] == "faiss"
    lines = compressed_part(rows)
    at = next(number for number, line in enumerate(lines) if line.endswith("FAISS / int8 |"))
    assert lines[at + 2].count("|") == lines[at].count("|")
    assert lines[at + 2].startswith("| 300 | 32 | 1 | 1 |")


def test_a_case_that_would_take_minutes_a_call_is_left_out() -> None:
    sizes = replace(QUICK, compressed_shapes=((1_000_000, 128),), compressed_batches=(1, 1024), threads=(1,))
    assert MOST_SCORES < 1024 * 1_000_000
    assert [note for note, _ in compressed_steps({}, sizes, 1, 0)] == ["compressed: K = 1000000, d = 128, 1 probes"]
