"""Targets: what holue was to reach, beside what a run measured."""

from __future__ import annotations

from collections.abc import Iterator

from holue.bench.page.markdown import cut, percent
from holue.bench.page.store_targets import store_verdicts
from holue.bench.page.verdict import Verdict
from holue.bench.sections.section import Result, Row

FASTER = {"holue float16": 1.7, "holue int8": 3.0}
"""Times faster than float32 a form is to be at one probe, where the gallery does not fit the cache."""
MEMORY_BOUND = 100_000
"""Subjects from which that is so."""
APPROXIMATE_AT = {"subjects": 1_000_000, "dim": 128}
APPROXIMATE_FASTER, LOG_MASS_OFF, SAME_DECISIONS, COVERED = 10.0, 0.01, 0.999, 0.99


BINARY_FASTER = {1: 10.0, 256: 4.0}
"""How many times faster than float32 one bit per coordinate is to be, by the number of probes."""


def verdicts(result: Result) -> list[Verdict]:
    """Every target a run can judge; what was not measured is left out.

    >>> row = {"system": "holue", "subjects": 9, "dim": 4, "probes": 64, "threads": 1, "ratio_to_sgemm": 1.2}
    >>> [(verdict.measured, verdict.met) for verdict in verdicts({"comparison": [row]})]
    [('1.20', False)]
    """
    return [
        *_ratios(result.get("comparison", [])),
        *_memory(result),
        *_compressed(result.get("compressed", [])),
        *_binary(result.get("binary", {})),
        *_approximate(result.get("approximate", {})),
        *_changes(result.get("changes", [])),
        *_faces(result.get("faces", {})),
        *store_verdicts(result),
        *_other_costs(result),
        *_start(result),
    ]


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


def _compressed(rows: list[Row]) -> Iterator[Verdict]:
    for name, limit in FASTER.items():
        ours = [r for r in rows if r["system"] == name and r["probes"] == 1 and r["subjects"] >= MEMORY_BOUND]
        for dim in sorted({row["dim"] for row in ours}, reverse=True):
            worst = min((row for row in ours if row["dim"] == dim), key=lambda row: row["times_faster"])
            text = f"{name.removeprefix('holue ')} at least {limit:g} times faster than float32, one probe, d = {dim}"
            where = f"K = {worst['subjects']}, {_place(worst)}"
            yield Verdict(text, cut(worst["times_faster"]), where, worst["times_faster"] >= limit)


def _binary(found: Result) -> Iterator[Verdict]:
    ours = [row for row in found.get("speed", []) if row["system"] == "holue binary"]
    for probes, limit in BINARY_FASTER.items():
        here = [row for row in ours if row["probes"] == probes]
        if here:
            worst = min(here, key=lambda row: row["times_faster"])
            where = f"{worst['world']}, K = {worst['subjects']}, d = {worst['dim']}, {_place(worst)}"
            text = f"binary at least {limit:g} times faster than float32, {probes} probe{'s' if probes > 1 else ''}"
            yield Verdict(text, cut(worst["times_faster"]), where, worst["times_faster"] >= limit)
    accuracy = found.get("accuracy", [])
    if accuracy:
        worst = min(accuracy, key=lambda row: row["same_decisions"])
        where = f"{worst['world']}, K = {worst['subjects']}, d = {worst['dim']}, {worst['probes']} probes"
        text = "binary decisions identical for at least 99.99 % of probes"
        yield Verdict(text, f"{100 * worst['same_decisions']:.2f} %", where, worst["same_decisions"] >= 0.9999)


def _approximate(found: Result) -> Iterator[Verdict]:
    ours = [row for row in found.get("speed", []) if row["system"] == "approximate" and _is_wanted(row)]
    for probes in (1, 256):
        here = [row for row in ours if row["probes"] == probes]
        if here:
            worst = min(here, key=lambda row: row["times_faster"])
            text = f"approximate at least {APPROXIMATE_FASTER:g} times faster than exact, {_count(probes, 'probe')}"
            met = worst["times_faster"] >= APPROXIMATE_FASTER
            yield Verdict(text, cut(worst["times_faster"]), f"K = {worst['subjects']}, {_place(worst)}", met)
    for case in filter(_is_wanted, found.get("accuracy", [])):
        off = {who: case[who]["kappa_over_t"]["log_mass_off"] for who in ("mated", "strangers")}
        who = max(off, key=lambda one: float(off[one]["q99"]))
        largest = max(one["largest"] for one in off.values())
        where = f"K = {case['subjects']}, {case['probes']} probes"
        yield Verdict(
            f"approximate log-mass at κ/T off by at most {LOG_MASS_OFF:g} for 99 % of the mated probes and of the strangers",
            f"{off[who]['q99']:.4f} (largest of all {largest:.4f})",
            f"{where}, {who}",
            off[who]["q99"] <= LOG_MASS_OFF,
        )
        same = case["decisions_identical"]
        text = f"approximate decisions identical for at least {100 * SAME_DECISIONS:g} % of probes"
        yield Verdict(text, percent(same), where, same >= SAME_DECISIONS)
        covered, who, label = min(
            (case[who][label]["covered"], who, label) for who in off for label in ("kappa", "kappa_over_t")
        )
        text = f"true log-mass within three standard errors for at least {100 * COVERED:g} % of probes"
        sharpness = "κ" if label == "kappa" else "κ/T"
        yield Verdict(text, percent(covered), f"{where}, {who}, at {sharpness}", covered >= COVERED)


def _changes(rows: list[Row]) -> Iterator[Verdict]:
    if not rows:
        return
    size = f"K = {rows[0]['subjects']}, d = {rows[0]['dim']}"
    for name, unit, limit, text in (
        ("enroll_ms", "ms", 1.0, "one subject enrolled in under 1 ms"),
        ("remove_ms", "ms", 1.0, "one subject removed in under 1 ms"),
        ("enroll_mb", "MB", 5.0, "one subject enrolled with under 5 MB"),
        ("remove_mb", "MB", 5.0, "one subject removed with under 5 MB"),
        ("ratio", "", 1.1, "the question after a change at most 1.1 × one before, median"),
        ("ratio_p99", "", 1.1, "the question after a change at most 1.1 × one before, 99th percentile"),
    ):
        worst = max(rows, key=lambda row: float(row[name]))
        yield Verdict(text, f"{worst[name]:.2f} {unit}".strip(), f"{worst['search']}, {size}", worst[name] <= limit)
    ratio, search, probes = max((gone["ratio"], row["search"], gone["probes"]) for row in rows for gone in row["gone"])
    where = f"{search}, {size}, {_count(probes, 'probe')}"
    yield Verdict("a scan with a tenth gone at most 1.15 × a clean one", f"{ratio:.2f}", where, ratio <= 1.15)


def _faces(found: Result) -> Iterator[Verdict]:
    for row in found.get("rows", []):
        if "cosine_median" not in row:
            continue
        where = f"{row['count']} photographs"
        yield Verdict(
            "a face found in at least 99 % of photographs", percent(row["found"]), where, row["found"] >= 0.99
        )
        for name, limit, text in (
            ("cosine_median", 0.97, "in the median"),
            ("cosine_p01", 0.90, "at the 1st percentile"),
        ):
            target = f"cosine of a face with its crop aligned before at least {limit:g} {text}"
            yield Verdict(target, cut(row[name]), where, row[name] >= limit)


def _is_wanted(row: Row) -> bool:
    return APPROXIMATE_AT.items() <= row.items()


def _other_costs(result: Result) -> Iterator[Verdict]:
    limits = {"calibrate": ("probes", 20_000), "pool": ("samples", 1_000_000)}
    for row in result.get("other_costs", []):
        unit, count = limits.get(row["cost"], ("", 0))
        if unit and row[unit] >= count:
            where = f"{row[unit]} {unit}, d = {row['dim']}"
            yield Verdict(f"{row['cost']} in under 5 s", f"{row['seconds']:.1f} s", where, row["seconds"] < 5)


def _start(result: Result) -> Iterator[Verdict]:
    if result.get("start"):
        cached = result["start"]["cached"]
        seconds = cached["import holue"]
        yield Verdict("import of holue in under 0.5 s", f"{seconds:.2f} s", "a new process", seconds < 0.5)
        seconds = cached["first fit"] + cached["first identify"]
        text = "first call without waiting more than 2 s for compilation"
        yield Verdict(text, f"{seconds:.2f} s", "a new process, compiled before", seconds < 2)


def _place(row: Row) -> str:
    return f"{_count(row['probes'], 'probe')}, {_count(row['threads'], 'thread')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number > 1 else ''}"
