from dataclasses import replace
from typing import Any

from holue.bench.compressed import as_text, compressed_steps
from holue.bench.sizes import QUICK


def test_every_form_is_measured_beside_float32_with_its_bytes_and_bounds() -> None:
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
