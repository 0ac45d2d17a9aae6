"""Page: ``docs/speed.md`` from the numbers of one run; none of them is typed by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holue.bench.targets import verdicts
from holue.bench.world import CONCENTRATION, TEMPERATURE

Result = dict[str, Any]
Row = dict[str, Any]

SYSTEMS = {
    "sgemm": "the matrix product alone, by numpy's BLAS, into a ready buffer: the limit for whoever computes every score",
    "holue": f"top 5, log-mass and mean score at κ = {CONCENTRATION:g} and κ/{TEMPERATURE:g}",
    "faiss": "`IndexFlatIP`, the one nearest subject",
    "usearch": "exact search, the one nearest subject",
    "numpy float32": "holue's answer on the dense matrix of scores",
    "numpy float64": "the posterior as research code writes it: float64 logits N×K and a softmax",
}
CAPTION = (
    "Time relative to the bare matrix product of the same size (lower is better): holue gives the top five and four sums over "
    "the whole gallery, FAISS and usearch one neighbour. Right: time per score as the gallery grows."
)
BILLION = 10**9
MACHINE_BYTES = 20e9
"""Gallery held by one machine in the arithmetic of a billion subjects."""


def speed_page(result: Result, remarks: str = "", picture: str | None = None) -> str:
    """The page in Markdown; ``remarks`` are put at the end, ``picture`` is where the chart is, seen from the page."""
    lines = ["# Speed", "", *_introduction(result)]
    if not result["finished"]:
        lines += ["", "**This run was interrupted: some sizes are missing.**"]
    lines += ["", "## Targets", "", *_targets(result), "", "## The whole answer beside a bare search", ""]
    if picture is not None:
        lines += [f"![{CAPTION}]({picture})", ""]
    lines += _comparison(result)
    lines += ["", "## Memory", "", *_memory(result), "", "## Growth", "", *_growth(result)]
    lines += ["", "## Everything else", "", *_chores(result)]
    lines += ["", "## A billion subjects, by arithmetic", "", *_billion(result["comparison"])]
    if remarks.strip():
        lines += ["", remarks.strip()]
    return "\n".join(lines) + "\n"


def _introduction(result: Result) -> list[str]:
    machine = result["machine"]
    load = machine.get("load")
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    lines = [
        "The alternative to holue is a bare nearest-neighbour search. holue gives more (the top five subjects, and the log-mass "
        "and mean score of the whole gallery at two sharpnesses, from which posterior, decision and uncertainty follow), and "
        "should not be slower for it. This page is made by `holue bench` from what it measured; none of its numbers is typed by "
        "hand, except in the remarks at the end, which say where theirs come from.",
        "",
        "```bash",
        "make bench           # measures into speed.json, speed.md and speed.png",
        "holue bench --quick  # a look at smaller galleries",
        "# this page and its picture, without measuring:",
        "holue bench --from speed.json --page docs/speed.md --remarks docs/speed-remarks.txt --chart docs/figures",
        "```",
        "",
        "All systems run in one process and take turns, round after round, after one call that is not counted; a pause before "
        "each call lets the threads of the last library fall asleep. Threads are pinned. Ratios are medians of ratios taken "
        "*round by round*, so that what disturbs the machine cancels. Half of the probes show somebody enrolled, half are "
        "strangers; the gallery is random and in memory, float32.",
        "",
        "| system | what it computes |",
        "|---|---|",
        *(f"| `{name}` | {what} |" for name, what in SYSTEMS.items()),
        "",
        f"Measured on {machine['processors']} processors ({machine['architecture']}, {machine['vectors']}), {machine['blas']}, "
        f"Python {machine['python']}, {packages}; up to {result['rounds']} rounds, {result['seconds'] / 60:.1f} minutes in all.",
    ]
    if load is not None:
        quiet = (
            "so the machine was quiet" if load < 0.5 else "so it was **busy**: read the ratios, not the milliseconds"
        )
        lines[-1] += f" Load at the start {load:.1f}, {quiet}."
    lines += [f"Not measured: {name}, {why}." for name, why in result["skipped"].items()]
    return lines


def _targets(result: Result) -> list[str]:
    missed_first = sorted(verdicts(result), key=lambda one: one.met)
    rows = [(one.target, one.measured, one.where, "met" if one.met else "**missed**") for one in missed_first]
    return _table(("target for holue", "worst measured", "where", ""), rows, "llll")


def _comparison(result: Result) -> list[str]:
    lines = []
    for dim, threads in _distinct(result["comparison"], "dim", "threads"):
        here = [row for row in result["comparison"] if (row["dim"], row["threads"]) == (dim, threads)]
        names = [name for name in SYSTEMS if any(row["system"] == name for row in here)]
        head = ("probes", *(f"{name}, ms" for name in names), "holue / sgemm", "FAISS / holue")
        rows = []
        for (probes,) in _distinct(here, "probes"):
            by_name = {row["system"]: row for row in here if row["probes"] == probes}
            times = [_number(by_name.get(name, {}).get("median_ms"), 1) for name in names]
            to_faiss = by_name["holue"].get("ratio_to_faiss")
            ratios = [by_name["holue"].get("ratio_to_sgemm"), None if to_faiss is None else 1 / to_faiss]
            rows.append((str(probes), *times, *(_number(ratio, 2) for ratio in ratios)))
        subjects = here[0]["subjects"]
        lines += [f"K = {_spaced(subjects)}, d = {dim}, {threads} thread{'s' if threads > 1 else ''}:", ""]
        lines += [*_table(head, rows, "r" * len(head)), ""]
    return lines[:-1]


def _memory(result: Result) -> list[str]:
    rows = [row for row in result["comparison"] if row.get("peak_mb") is not None]
    if not rows:
        return ["This system does not tell a process its own memory."]
    most = max(row["probes"] for row in rows)
    some = [row for row in rows if row["probes"] == most and row["threads"] == max(r["threads"] for r in rows)]
    dims = [dim for (dim,) in _distinct(some, "dim")]
    cells = {(row["system"], row["dim"]): row["peak_mb"] for row in some}
    table = [
        (f"`{name}`", *(_number(cells.get((name, dim)), 0) for dim in dims))
        for name in SYSTEMS
        if any((name, dim) in cells for dim in dims)
    ]
    head = ("system", *(f"d = {dim}, MB" for dim in dims))
    return [
        f"What a call takes beside what was resident before, {most} probes (FAISS holds a copy of the gallery, which is not "
        "counted):",
        "",
        *_table(head, table, "l" + "r" * len(dims)),
    ]


def _growth(result: Result) -> list[str]:
    mapped = result["mapped"] or {}
    rows = [row for row in [*result["growth"], *mapped.get("rows", [])] if row["system"] == "holue"]
    if not rows:
        return ["Not measured."]
    on_disk = {row["subjects"] for row in mapped.get("rows", [])}
    table = [
        (
            _spaced(row["subjects"]) + (" (from disk)" if row["subjects"] in on_disk else ""),
            str(row["dim"]),
            str(row["probes"]),
            _number(row["median_ms"], 1),
            f"{1e6 * row['median_ms'] / row['subjects'] / row['probes']:.2f}",
            _number(row.get("ratio_to_sgemm"), 2),
            _number(row["peak_mb"], 1),
        )
        for row in rows
    ]
    head = ("subjects", "d", "probes", "holue, ms", "ns per score", "holue / sgemm", "own memory, MB")
    lines = [f"{rows[0]['threads']} threads:", "", *_table(head, table, "r" * len(head))]
    if "skipped" in mapped:
        lines += ["", f"The gallery on disk was not measured: {mapped['skipped']}."]
    return lines


def _chores(result: Result) -> list[str]:
    rows = []
    if result["latency"]:
        x = result["latency"]
        what = f"`identify` of one probe, K = {_spaced(x['subjects'])}, d = {x['dim']}"
        rows.append((what, f"p50 {x['p50_ms']:.1f} ms, p99 {x['p99_ms']:.1f} ms", ""))
    for row in result["chores"]:
        counts = ", ".join(f"{_spaced(row[unit])} {unit}" for unit in ("samples", "probes", "resamples") if unit in row)
        dim = f", d = {row['dim']}" if "dim" in row else ""
        taken = f"{row['seconds']:.2f} s ({row['processor_seconds']:.2f} s of processors)"
        rows.append((f"{row['chore']}: {counts}{dim}", taken, _number(row["peak_mb"], 0)))
    for state, title in (("cached", "compiled before"), ("compiling", "the very first, compiling")):
        for step, seconds in (result["start"] or {}).get(state, {}).items():
            rows.append((f"a new process, {title}: {step}", f"{seconds:.2f} s", ""))
    lines = _table(("what", "time", "own memory, MB"), rows, "lrr") if rows else ["Not measured."]
    if "evaluation" in result:
        x = result["evaluation"]
        lines += [
            "",
            f"A whole evaluation at IJB-C's size ({x['gallery_subjects']} subjects, {_spaced(x['probes'])} probes, "
            f"d = {x['dim']}, {len(x['methods'])} methods, {len(x['operating_points'])} operating points, "
            f"{x['resamples']} resamples) took {x['seconds']:.0f} s and {x['peak_rss_bytes'] / 1e9:.2f} GB.",
        ]
    return lines


def _billion(rows: list[Row]) -> list[str]:
    """Machines and seconds for 1e9 subjects, from the time of one thread at one probe and at the largest batch."""
    ours = [row for row in rows if row["system"] == "holue" and row["threads"] == 1]
    dims = [dim for (dim,) in _distinct(ours, "dim")]
    if not dims:
        return ["Not measured with one thread."]
    columns = []
    for dim in dims:
        here = sorted((row for row in ours if row["dim"] == dim), key=lambda row: row["probes"])
        one, many = here[0], here[-1]
        rate = 4 * dim * one["subjects"] * one["probes"] / (one["median_ms"] / 1e3)
        per_score = many["median_ms"] / 1e3 / many["subjects"] / many["probes"]
        size, machines = 4 * dim * BILLION, -(-4 * dim * BILLION // MACHINE_BYTES)
        columns.append(
            (
                f"{size / 1e12:.2f} TB",
                f"{rate / 1e9:.1f} GB/s",
                f"{1e9 * per_score:.2f} ns",
                f"{machines:.0f}",
                f"{MACHINE_BYTES / rate:.1f} s",
                f"{per_score * BILLION:.1f} s",
                f"{2 * machines / (per_score * BILLION):.0f}",
            )
        )
    names = (
        "gallery in float32",
        "measured: one thread reads, for one probe",
        "measured: one thread per score, at the largest batch",
        f"machines of 2 cores that hold it, {MACHINE_BYTES / 1e9:.0f} GB each",
        "one probe, each machine scanning its part on one core",
        "processor time per probe in large batches",
        "probes per second of all these machines in large batches, both cores",
    )
    table = [(name, *values) for name, *values in zip(names, *columns)]
    return [
        *_table(("", *(f"d = {dim}" for dim in dims)), table, "l" + "r" * len(dims)),
        "",
        "Evidence merges, so the shards need no more than these few numbers from each other. Ten times the rate is ten times the "
        "machines. A network, and machines that fail, are not in this arithmetic.",
    ]


def _distinct(rows: Iterable[Row], *keys: str) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> list[str]:
    rule = "|".join("---:" if side == "r" else "---" for side in align)
    return [f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _spaced(count: int) -> str:
    return f"{count:,}".replace(",", "\u202f") if count >= 10_000 else str(count)
