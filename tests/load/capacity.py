"""Capacity: the memory and processors that a gallery and a rate need, from measured constants."""

from __future__ import annotations

from statistics import median
from typing import Any

SUBJECTS, DIMENSIONS, RATES = (10_000, 100_000, 1_000_000), (128, 512), (1, 10, 100, 1000)
LEFT_FREE = 0.7
"""The share of a processor that is planned for: beyond, waiting grows quickly."""


def capacity(about: dict[str, Any], found: dict[str, Any], memory: dict[str, Any]) -> str:
    """The formula, its constants and a table K × d × rate → memory and processors."""
    size = about["subjects"] * about["dim"]
    alone, shared = (_cpu(found, "library", batch) for batch in ("1", "64"))
    around = _cpu(found, "holue", "64") - shared
    around_one = _cpu(found, "holue", "1") - alone
    b_alone, b_shared = alone / size, shared / size
    small = memory["seen"][0]["bytes"] - memory["subjects"] * 8 * memory["dim"]
    extra = (found["resident_bytes"] - small - 8 * size) / about["subjects"]
    lines = [
        "An answer takes `a` of a processor for everything but the scan, and the scan takes `b` for each of the K × d numbers of "
        "the gallery. Probes that wait together share a scan, so `b` is smaller in a busy service:",
        "",
        "    processors = rate × (a + b·K·d) / 0.7",
        "    memory     = base + K × (4·d·(1 + s) + c) bytes",
        "",
        f"Measured: a = {max(around, 0):.2f} ms in batches of 64 ({max(around_one, 0):.1f} ms for a request alone), "
        f"b = {1e6 * b_shared:.4f} ns in batches of 64 ({1e6 * b_alone:.3f} ns for a probe alone), "
        f"base = {small / 2**20:.0f} MiB, c = {max(extra, 0):.0f} bytes, with s = 1 sample for each subject, as in the "
        "table. Samples are read from mapped files: their part is memory that the system takes back where "
        "it needs it. 0.7 is the share of a processor that is planned for. "
        "The exact search in float32 is meant; one process, which shares a scan among all processors it has.",
        "",
        "| K | d | Memory | One answer alone, one processor | " + " | ".join(f"{rate:,}/s" for rate in RATES) + " |",
        "|---|---|---|---|" + "---|" * len(RATES),
    ]
    for subjects in SUBJECTS:
        for dim in DIMENSIONS:
            bytes_held = small + subjects * (8 * dim + max(extra, 0))
            one = max(around_one, 0) + b_alone * subjects * dim
            each = max(around, 0) + b_shared * subjects * dim
            cores = [_cores(rate * each / 1e3 / LEFT_FREE) for rate in RATES]
            lines.append(f"| {subjects:,} | {dim} | {_bytes(bytes_held)} | {one:,.1f} ms | " + " | ".join(cores) + " |")
    lines += [
        "",
        "The columns of rates are processors, for probes that share scans; at a rate so low that every probe is scanned alone, "
        "count rate × the time of one answer instead. Only the row of the measurement itself was measured: the others follow "
        "from the formula. Memory is that of the process; the disk holds the samples as well (4·d bytes each, and an audit row "
        "of about half a kilobyte for every answer).",
        "",
    ]
    return "\n".join(lines)


def _cpu(found: dict[str, Any], name: str, column: str) -> float:
    return float(median(each[name][column]["cpu_ms"] for each in found["rounds"]))


def _cores(value: float) -> str:
    return "< 0.1" if value < 0.1 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _bytes(value: float) -> str:
    return f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"
