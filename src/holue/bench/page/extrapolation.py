"""Extrapolation: what a billion subjects would take, by arithmetic from the measured rates."""

from __future__ import annotations

from math import log

from holue.bench.page.markdown import distinct, table
from holue.bench.sections.section import Result, Row

BILLION = 10**9
MACHINE_BYTES = 20e9
"""Gallery held by one machine."""

Column = dict[str, str]


def extrapolation(result: Result) -> list[str]:
    """Machines and seconds for 1e9 subjects, a column per dimension, from what one thread did; nothing where it did nothing."""
    ours = [row for row in result.get("comparison", []) if row["system"] == "holue" and row["threads"] == 1]
    codes = [row for row in result.get("compressed", []) if row["system"] == "holue int8" and row["threads"] == 1]
    speed = result.get("approximate", {}).get("speed", [])
    indexed = [row for row in speed if row["system"] == "approximate" and row["threads"] == 1]
    dims = [dim for (dim,) in distinct([*ours, *codes, *indexed], "dim")]
    if not dims:
        return []
    columns: list[Column] = []
    for dim in dims:
        column: Column = {}
        for rows, reckon in ((ours, _exact), (codes, _int8), (indexed, _approximate)):
            here = sorted((row for row in rows if row["dim"] == dim), key=lambda row: (row["subjects"], row["probes"]))
            if here:
                column |= reckon(here, dim)
        columns.append(column)
    names = list(dict.fromkeys(name for column in columns for name in column))
    lines = [(name, *(column.get(name, "–") for column in columns)) for name in names]
    text = [
        *table(("", *(f"d = {dim}" for dim in dims)), lines, "l" + "r" * len(dims)),
        "",
        "Evidence merges, so the shards need no more than these few numbers from each other. Ten times the rate is ten times the "
        "machines. A network, and machines that fail, are not in this arithmetic.",
    ]
    if indexed:
        text[-1] += (
            " Approximate evidence is reckoned onwards from its largest gallery with the growth measured from the smallest to "
            "it, but never with less than √K."
        )
    return text


def _exact(rows: list[Row], dim: int) -> Column:
    one, many = rows[0], rows[-1]
    rate = _bytes_per_second(one, 4 * dim)
    per_score = many["median_ms"] / 1e3 / many["subjects"] / many["probes"]
    machines = _machines(4 * dim)
    return {
        "gallery in float32": f"{4 * dim * BILLION / 1e12:.2f} TB",
        "measured: one thread reads, for one probe": f"{rate / 1e9:.1f} GB/s",
        "measured: one thread per score, at the largest batch": f"{1e9 * per_score:.2f} ns",
        f"machines of 2 cores that hold it, {MACHINE_BYTES / 1e9:.0f} GB each": str(machines),
        "one probe, each machine scanning its part on one core": f"{MACHINE_BYTES / rate:.1f} s",
        "processor time per probe in large batches": f"{per_score * BILLION:.1f} s",
        "probes per second of all these machines in large batches, both cores": f"{2 * machines / (per_score * BILLION):.0f}",
    }


def _int8(rows: list[Row], dim: int) -> Column:
    largest = next(row for row in rows if row["subjects"] == rows[-1]["subjects"])
    each = 1e6 * largest["gallery_mb"] / largest["subjects"]
    rate = _bytes_per_second(largest, each)
    return {
        "codes in int8": f"{each * BILLION / 1e12:.2f} TB",
        "int8, measured: one thread reads, for one probe": f"{rate / 1e9:.1f} GB/s",
        "int8: machines that hold the codes, the exact rows on disk": str(_machines(each)),
        "int8: one probe, each machine scanning its part on one core": f"{MACHINE_BYTES / rate:.1f} s",
    }


def _approximate(rows: list[Row], dim: int) -> Column:
    machines = _machines(4 * dim)
    held = BILLION / machines
    column: Column = {}
    for probes in (rows[0]["probes"], rows[-1]["probes"]):
        here = [row for row in rows if row["probes"] == probes]
        smallest, largest = here[0], here[-1]
        power = 0.5
        if largest["subjects"] > smallest["subjects"]:
            measured = log(largest["median_ms"] / smallest["median_ms"]) / log(
                largest["subjects"] / smallest["subjects"]
            )
            power = max(power, measured)
        seconds = largest["median_ms"] / 1e3 / probes * (held / largest["subjects"]) ** power
        if probes == 1:
            column["approximate: machines that hold the gallery"] = str(machines)
            column["approximate: one probe, each machine its part on one core"] = f"{1e3 * seconds:.0f} ms"
        else:
            column["approximate: processor time per probe in large batches"] = f"{1e3 * seconds * machines:.0f} ms"
            column["approximate: probes per second of all these machines in large batches, both cores"] = (
                f"{2 / seconds:.0f}"
            )
    return column


def _machines(bytes_each: float) -> int:
    return int(-(-bytes_each * BILLION // MACHINE_BYTES))


def _bytes_per_second(row: Row, bytes_each: float) -> float:
    return float(bytes_each * row["subjects"] * row["probes"] / (row["median_ms"] / 1e3))
