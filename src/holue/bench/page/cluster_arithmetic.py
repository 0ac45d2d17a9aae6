"""Cluster arithmetic: what 10⁸ and 10⁹ subjects would take on a cluster, from the measured constants."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from holue.bench.page.markdown import table
from holue.bench.sections.section import Result

SUBJECTS = (10**8, 10**9)
CORES, MACHINE_BYTES = 16, 48e9
"""Of a machine: processors, and memory for what is scanned."""
REPLICAS = 2
LISTS_POWER = 0.5
"""Lists are chosen so that the work for a probe grows with the root of the rows; measured growth is on the speed page."""


def cluster_arithmetic(growth: Result, fill_bytes_per_s: float | None) -> list[str]:
    """A row for each size and kind of search; nothing where the constants were not measured."""
    kinds, rows = growth.get("kinds"), growth.get("rows")
    if not kinds or not rows:
        return []
    fixed, per_shard = _call(rows)
    head = (
        "subjects", "search", "memory, both replicas", "machines", "shards", "one probe, ms", "of it calls, ms",
        "probes/s, batches", "a node's loss",
    )  # fmt: skip
    cells = [_reckoned(subjects, each, fixed, per_shard, fill_bytes_per_s) for subjects in SUBJECTS for each in kinds]
    dim = kinds[0]["dim"]
    return [
        f"By arithmetic, d = {dim}, machines of {CORES} cores with {MACHINE_BYTES / 1e9:.0f} GB for what is scanned, {REPLICAS} "
        f"replicas, as many shards as machines, each read by {CORES} threads. A call takes {fixed:.1f} ms, and "
        f"{1e3 * per_shard:.0f} µs of the asking process's processor time more for each shard; more than two threads, more than "
        f"{max(row['shards'] for row in rows)} shards, and a real network, were not measured. "
        "Exact rows are mapped from disk where codes are "
        "scanned. A node's loss is the time until its shards have two replicas again, filled by one process at the measured "
        "rate; until then one replica of each answers.",
        "",
        *table(head, cells, "rl" + "r" * (len(head) - 2)),
    ]


def _call(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Milliseconds of a call to the fewest shards, and of the asking process's work for each shard more.

    The shards of a large cluster do not share two processors, as those that were measured did. The process that asks them all
    does its work one after the other.
    """
    fewest = min(row["shards"] for row in rows)
    fixed = min(row["call_ms"] for row in rows if row["shards"] == fewest)
    work = {row["shards"]: row["asker_ms"] for row in rows if "asker_ms" in row}
    slope = float(np.polyfit(list(work), list(work.values()), 1)[0]) if len(work) > 1 else 0.0
    return fixed, max(slope, 0.0)


def _reckoned(
    subjects: int, each: dict[str, Any], fixed: float, per_shard: float, fill: float | None
) -> tuple[str, ...]:
    dim, measured = each["dim"], each["subjects"]
    scanned = {"exact": 4.0 * dim, "int8": dim + 8.0, "binary": dim / 8 + 8.0, "approximate": 4.0 * dim + 8.0}[
        each["kind"]
    ]
    machines = max(REPLICAS, ceil(REPLICAS * subjects * scanned / MACHINE_BYTES))
    shards = machines  # fewer and larger ones cost fewer calls
    share = subjects / shards / measured
    work = (share**LISTS_POWER if each["kind"] == "approximate" else share) / CORES
    one, batched = each["one_ms"] * work, each["each_of_64_ms"] * work
    calls = fixed + per_shard * shards
    rate = 1e3 / batched
    rows_on_node = REPLICAS * subjects * 4.0 * dim / machines
    loss = "–" if fill is None else f"{rows_on_node / fill / 60:.0f} min"
    return (
        f"{subjects:.0e}".replace("e+0", "e"), each["kind"], f"{REPLICAS * subjects * scanned / 1e9:.0f} GB", str(machines),
        str(shards), f"{one + calls:.0f}", f"{calls:.0f}", f"{rate:.0f}", loss,
    )  # fmt: skip
