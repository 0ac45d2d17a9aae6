"""Targets: what holue was to reach, beside what a run measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Result = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """One target, the worst that was measured for it, and where."""

    target: str
    measured: str
    where: str
    met: bool


def verdicts(result: Result) -> list[Verdict]:
    """Every target a run can judge; what was not measured is left out.

    >>> row = {"system": "holue", "subjects": 9, "dim": 4, "probes": 64, "threads": 1, "ratio_to_sgemm": 1.2}
    >>> [(verdict.measured, verdict.met) for verdict in verdicts({"comparison": [row]})]
    [('1.20', False)]
    """
    return [*_ratios(result.get("comparison", [])), *_memory(result), *_chores(result), *_start(result)]


def _ratios(rows: list[Row]) -> Iterator[Verdict]:
    ours = [row for row in rows if row["system"] == "holue"]
    for dim in sorted({row["dim"] for row in ours}, reverse=True):
        here = [row for row in ours if row["dim"] == dim]
        many, few = [r for r in here if r["probes"] >= 64], [r for r in here if r["probes"] < 64]
        for some, other, limit, text in (
            (many, "sgemm", 1.15, "at most 1.15 × the bare product's time, from 64 probes on"),
            (few, "sgemm", 1.3, "at most 1.3 × the bare product's time, below 64 probes"),
            (here, "faiss", 1.0, "never slower than FAISS"),
            (many, "faiss", 0.5, "at most half of FAISS's time, from 64 probes on"),
        ):
            judged = [row for row in some if f"ratio_to_{other}" in row]
            if judged:
                worst = max(judged, key=lambda row: row[f"ratio_to_{other}"])
                ratio = worst[f"ratio_to_{other}"]
                yield Verdict(f"{text}, d = {dim}", f"{ratio:.2f}", _place(worst), ratio <= limit)


def _memory(result: Result) -> Iterator[Verdict]:
    rows = [row for row in (result.get("mapped") or {}).get("rows", []) if row["peak_mb"] is not None]
    if rows:
        worst = max(rows, key=lambda row: row["peak_mb"])
        text = "under 1 GB of its own for a memory-mapped gallery"
        yield Verdict(text, f"{worst['peak_mb']:.1f} MB", _place(worst), worst["peak_mb"] < 1000)


def _chores(result: Result) -> Iterator[Verdict]:
    limits = {"calibrate": ("probes", 20_000), "pool": ("samples", 1_000_000)}
    for row in result.get("chores", []):
        unit, count = limits.get(row["chore"], ("", 0))
        if unit and row[unit] >= count:
            where = f"{row[unit]} {unit}, d = {row['dim']}"
            yield Verdict(f"{row['chore']} in under 5 s", f"{row['seconds']:.1f} s", where, row["seconds"] < 5)


def _start(result: Result) -> Iterator[Verdict]:
    if result.get("start"):
        cached = result["start"]["cached"]
        seconds = cached["import holue"]
        yield Verdict("import of holue in under 0.5 s", f"{seconds:.2f} s", "a new process", seconds < 0.5)
        seconds = cached["first fit"] + cached["first identify"]
        text = "first call without waiting more than 2 s for compilation"
        yield Verdict(text, f"{seconds:.2f} s", "a new process, compiled before", seconds < 2)


def _place(row: Row) -> str:
    return f"{row['probes']} probes, {row['threads']} thread{'s' if row['threads'] > 1 else ''}"
