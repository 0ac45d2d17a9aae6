"""Cluster page: the part of the speed page about shards on Ray."""

from __future__ import annotations

from holue.bench.page.markdown import number, table
from holue.bench.sections.section import Result


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
    calls = ", ".join(f"{row['empty_p50_ms']:.2f} ms (p99 {row['empty_p99_ms']:.2f})" for row in found["calls"])
    return [
        "Exact evidence of two shards, one core each, on a Ray of this machine, beside the scan in this process on two threads; "
        f"medians, in turn. An empty call takes {calls}.",
        "",
        *table(head, cells, "r" * len(head)),
    ]
