"""Cluster page: the part of the speed page about shards on Ray."""

from __future__ import annotations

from holue.bench.page.cluster_arithmetic import cluster_arithmetic
from holue.bench.page.markdown import number, table
from holue.bench.sections.section import Result
from holue.cluster.asking import HEDGED_AFTER, HEDGED_LEAST


def cluster_part(found: Result) -> list[str]:
    """The same scan here and on two shards; nothing where it was not measured."""
    if "skipped" in found:
        return [f"Not measured: {found['skipped']}."]
    if not found.get("rows"):
        return []
    head = ("subjects", "d", "probes", "local, ms", "cluster, ms", "p99, ms", "more, ms", "×", "same bits")
    cells = [
        (
            str(row["subjects"]),
            str(row["dim"]),
            str(row["probes"]),
            *(number(row[name], 2) for name in ("local_ms", "cluster_ms", "cluster_p99_ms", "more_ms", "ratio")),
            "yes" if row["same_bits"] else "NO",
        )
        for row in found["rows"]
    ]
    lines = [
        "Exact evidence of two shards, one core each, on a Ray of this machine, beside the scan in this process on two threads; "
        "medians, in turn.",
        "",
        *table(head, cells, "r" * len(head)),
    ]
    if found["calls"]:
        costs = [(row["what"], number(row["p50_ms"], 2), number(row["p99_ms"], 2)) for row in found["calls"]]
        lines += [
            "",
            "Where the time of a call goes; two shards of a thousand subjects each:",
            "",
            *table(("what", "median, ms", "p99, ms"), costs, "lrr"),
        ]
    for row in found.get("batches", ()):
        lines += [
            "",
            f"A file of {row['probes']} probes, K = {row['subjects']}, d = {row['dim']}, as `holue identify` asks it: "
            f"{row['cluster_per_s']:.0f} probes a second on two shards, {row['local_per_s']:.0f} on two threads of this process, "
            f"both on two cores: {row['ratio']:.2f} ×.",
        ]
    return lines


def growth_part(growth: Result, found: Result) -> list[str]:
    """More shards, delays and stragglers beside the model, and the arithmetic for larger galleries."""
    if not growth.get("rows"):
        return []
    cells = [
        (
            str(row["shards"]),
            number(row["delay_ms"], 1),
            f"{row['straggling']:.0%}" if row["straggling"] else "–",
            *(number(row[name], 2) for name in ("call_ms", "scan_ms", "model_ms", "p50_ms", "p99_ms")),
            number(row["model_p99_ms"], 1) if "model_p99_ms" in row else "–",
        )
        for row in growth["rows"]
    ]
    first = growth["rows"][0]
    head = (
        "shards",
        "delay, ms",
        "late",
        "calls, ms",
        "scan on one core, ms",
        "model, ms",
        "median, ms",
        "p99, ms",
        "model of p99, ms",
    )
    fills = [4.0 * row["subjects"] * row["dim"] / row["filled_s"] for row in found.get("rows", ()) if row["filled_s"]]
    return [
        f"One probe, K = {first['subjects']}, d = {first['dim']}; all are measured in turn. The "
        "model: calls (measured with hardly any rows), the delay, and the scan divided by the two cores that there are (one "
        "shard reads with two threads, more with one each). Late: that share of answers comes 200 ms late, and the replica is "
        f"asked after {1e3 * HEDGED_LEAST:.0f} ms or {HEDGED_AFTER:g} times the usual time, whichever is longer.",
        "",
        *table(head, cells, "r" * len(head)),
        "",
        *cluster_arithmetic(growth, max(fills, default=None)),
    ]
