"""The part of the speed page about shards: what was measured, beside the model, and the arithmetic for larger galleries."""

from __future__ import annotations

from holue.bench.page.cluster_page import cluster_part, growth_part

GROWTH = {
    "rows": [
        {"subjects": 200_000, "dim": 128, "shards": shards, "delay_ms": 0.0, "straggling": 0.0, "call_ms": 2.0 + shards,
         "asker_ms": 0.5 * shards,
         "scan_ms": 6.0, "model_ms": 5.5, "p50_ms": 5.6, "p99_ms": 8.0}
        for shards in (1, 2, 4)
    ],
    "kinds": [
        {"kind": "exact", "subjects": 200_000, "dim": 128, "one_ms": 6.0, "each_of_64_ms": 1.0},
        {"kind": "int8", "subjects": 200_000, "dim": 128, "one_ms": 2.0, "each_of_64_ms": 1.0},
    ],
}  # fmt: skip
MEASURED = {
    "rows": [
        {"subjects": 1_000_000, "dim": 128, "probes": 1, "filled_s": 5.12, "local_ms": 20.0, "cluster_ms": 23.0,
         "cluster_p99_ms": 30.0, "more_ms": 3.0, "ratio": 1.15, "same_bits": True}
    ],
    "calls": [{"what": "an empty call", "p50_ms": 0.7, "p99_ms": 2.0}],
    "batches": [],
}  # fmt: skip


def test_calls_and_rows_are_tables() -> None:
    text = "\n".join(cluster_part(MEASURED))
    assert "| 1000000 | 128 | 1 | 20.00 | 23.00 | 30.00 | 3.00 | 1.15 | yes |" in text
    assert "| an empty call | 0.70 | 2.00 |" in text


def test_larger_galleries_are_reckoned_from_the_constants() -> None:
    lines = growth_part(GROWTH, MEASURED)
    text = "\n".join(lines)
    assert "A call takes 3.0 ms, and " in text
    assert "500 µs of the asking" in text
    exact = next(line for line in lines if line.startswith("| 1e8 | exact"))
    # 1e8 × 512 bytes, twice: 102.4 GB on 3 machines, so 3 shards of 16 threads, each for 2.08e6 subjects: 6 ms × 10.4, and
    # 3 + 1.5 ms of calls.
    assert [cell.strip() for cell in exact.split("|")[3:10]] == ["102 GB", "3", "3", "67", "4", "96", "6 min"]
    codes = next(line for line in lines if line.startswith("| 1e8 | int8"))
    assert codes.split("|")[4].strip() == "2"


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert growth_part({}, {}) == []
    assert growth_part({"rows": [], "kinds": []}, {}) == []
