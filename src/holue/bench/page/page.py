"""Page: ``docs/speed.md`` from the numbers of one run; none of them is typed by hand."""

from __future__ import annotations

from holue.bench.page.approximate_page import approximate_part
from holue.bench.page.binary_page import binary_part
from holue.bench.page.changes_page import changes_part
from holue.bench.page.cluster_page import cluster_part, growth_part
from holue.bench.page.compressed_page import compressed_part
from holue.bench.page.extrapolation import extrapolation
from holue.bench.page.faces_page import faces_part
from holue.bench.page.markdown import distinct, number, spaced, table
from holue.bench.page.store_page import live_part, peers_part, store_part
from holue.bench.page.targets import verdicts
from holue.bench.sections.section import Result, measured_sections
from holue.bench.worlds.world import CONCENTRATION, TEMPERATURE

SYSTEMS = {
    "sgemm": "the matrix product alone, by numpy's BLAS, into a ready buffer: the limit for whoever computes every score",
    "holue": f"top 5, log-mass and mean score at κ = {CONCENTRATION:g} and κ/{TEMPERATURE:g}",
    "faiss": "`IndexFlatIP`, the one nearest subject",
    "usearch": "exact search, the one nearest subject",
    "numpy float32": "holue's answer on the dense matrix of scores",
    "numpy float64": "the posterior as research code writes it: float64 logits N×K and a softmax",
}
STORES, BITS = {"store", "live", "peers"}, {"binary"}
"""Sections that have a page of their own where nothing else was measured."""
CAPTION = (
    "Time relative to the bare matrix product of the same size (lower is better): holue gives the top five and four sums over "
    "the whole gallery, FAISS and usearch one neighbour. Right: time per score as the gallery grows."
)


def speed_page(result: Result, remarks: str = "", figures: str | None = None) -> str:
    """The page in Markdown, of the sections that were measured.

    ``remarks`` are put at the end, ``figures`` is the folder of the pictures, seen from the page.
    """
    measured = set(measured_sections(result))
    if measured <= STORES:
        title, about = (
            "# Speed of the store and of the living gallery",
            _about_part("store,live,peers", "store", "store-speed"),
        )
    elif measured <= BITS:
        title, about = "# Speed of one and two bits per coordinate", _about_part("binary", "binary", "binary-speed")
    else:
        title, about = "# Speed", _about_search()
    lines = [title, "", *about, "", *_machine(result)]
    unfinished = [name for name, part in measured_sections(result).items() if not part["finished"]]
    if unfinished:
        lines += ["", f"**Interrupted, so that some sizes are missing: {', '.join(unfinished)}.**"]
    for title, content in (
        ("Targets", _targets(result)),
        ("The whole answer beside a bare search", _comparison(result, figures)),
        ("Memory", _memory(result)),
        ("Growth", _growth(result)),
        ("Compressed galleries", compressed_part(result.get("compressed", []))),
        ("One or two bits per coordinate", binary_part(result.get("binary", {}))),
        ("Sublinear: approximate evidence", approximate_part(result.get("approximate", {}), figures)),
        ("Subjects who come and go", changes_part(result.get("changes", []))),
        ("Whole photographs", faces_part(result.get("faces", {}))),
        ("Shards on Ray", cluster_part(result.get("cluster", {}))),
        ("More shards", growth_part(result.get("cluster_growth", {}), result.get("cluster", {}))),
        ("Durable enrolments", store_part(result.get("store", {}))),
        ("The living gallery", live_part(result.get("live", []))),
        ("Beside other stores of embeddings", peers_part(result.get("peers", {}))),
        ("Everything else", _other_costs(result)),
        ("A billion subjects, by arithmetic", extrapolation(result)),
    ):
        if content:
            lines += ["", f"## {title}", "", *content]
    if remarks.strip():
        lines += ["", remarks.strip()]
    return "\n".join(lines) + "\n"


def _about_part(sections: str, file: str, page: str) -> list[str]:
    return [
        "This page is made by `holue bench` from what it measured. None of its numbers is typed by hand, except in the remarks "
        "at the end.",
        "",
        "```bash",
        f"holue bench --sections {sections} --out runs/{file}.json",
        f"holue bench --from runs/{file}.json --page docs/{page}.md --remarks docs/{page}-remarks.txt",
        "```",
    ]


def _about_search() -> list[str]:
    return [
        "The alternative to holue is a bare nearest-neighbour search. holue gives more (the top five subjects, and the log-mass "
        "and mean score of the whole gallery at two sharpnesses, from which posterior, decision and uncertainty follow), and "
        "should not be slower for it. This page is made by `holue bench` from what it measured; none of its numbers is typed by "
        "hand, except in the remarks at the end, which say where theirs come from.",
        "",
        "```bash",
        "make bench           # measures into runs/: speed, pictures, store-speed (about half an hour)",
        "make bench-all       # and approximate evidence up to ten million subjects (over half an hour)",
        "holue bench --quick  # a look at smaller galleries",
        "holue bench --sections compressed --add --out runs/speed.json  # one section anew",
        "# this page and its pictures, without measuring:",
        "holue bench --from runs/speed.json --page docs/speed.md --remarks docs/speed-remarks.txt --chart docs/figures",
        "```",
        "",
        "All systems run in one process and take turns, round after round. A pause before each turn lets the threads of the last "
        "library fall asleep; since caches and processors are cold after it, a turn begins with a call that is not counted "
        "(unless one takes over a quarter of a second). Threads are pinned. Ratios are medians of ratios taken *round by round*, "
        "so that what disturbs the machine cancels. Half of the probes show somebody enrolled, half are strangers; the gallery "
        "is random and in memory, float32.",
        "",
        "| system | what it computes |",
        "|---|---|",
        *(f"| `{name}` | {what} |" for name, what in SYSTEMS.items()),
    ]


def _machine(result: Result) -> list[str]:
    machine = result["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    lines = [
        f"Measured on {machine['processors']} processors ({machine['architecture']}, {machine['vectors']}), {machine['blas']}, "
        f"Python {machine['python']}, {packages}; {'; '.join(_runs(result))}.",
    ]
    loads = [part["load"] for part in measured_sections(result).values() if part["load"] is not None]
    if loads:
        quiet = (
            "So the machine was quiet."
            if max(loads) < 0.5
            else "So it was **busy**: read the ratios, not the milliseconds."
        )
        lines[-1] += f" {quiet}"
    lines += [f"Not measured: {name}, {why}." for name, why in result.get("skipped", {}).items()]
    return lines


def _runs(result: Result) -> list[str]:
    """Which sections were measured together, in how many rounds, how long, and beside what load."""
    together: dict[tuple[float | None, int], list[str]] = {}
    parts = measured_sections(result)
    for name, part in parts.items():
        together.setdefault((part["load"], part["rounds"]), []).append(name)
    return [
        f"{', '.join(names)}: up to {rounds} rounds, {sum(parts[name]['seconds'] for name in names) / 60:.1f} minutes"
        + ("" if load is None else f", load before it {load:.1f}")
        for (load, rounds), names in together.items()
    ]


def _targets(result: Result) -> list[str]:
    missed_first = sorted(verdicts(result), key=lambda one: one.met)
    if not missed_first:
        return []
    rows = [(one.target, one.measured, one.where, "met" if one.met else "**missed**") for one in missed_first]
    return table(("target for holue", "worst measured", "where", ""), rows, "llll")


def _comparison(result: Result, figures: str | None) -> list[str]:
    if not result.get("comparison"):
        return []
    lines = [] if figures is None else [f"![{CAPTION}]({figures}/speed.svg)", ""]
    for dim, threads in distinct(result["comparison"], "dim", "threads"):
        here = [row for row in result["comparison"] if (row["dim"], row["threads"]) == (dim, threads)]
        names = [name for name in SYSTEMS if any(row["system"] == name for row in here)]
        head = ("probes", *(f"{name}, ms" for name in names), "holue / sgemm", "FAISS / holue")
        rows = []
        for (probes,) in distinct(here, "probes"):
            by_name = {row["system"]: row for row in here if row["probes"] == probes}
            times = [number(by_name.get(name, {}).get("median_ms"), 1) for name in names]
            to_faiss = by_name["holue"].get("ratio_to_faiss")
            ratios = [by_name["holue"].get("ratio_to_sgemm"), None if to_faiss is None else 1 / to_faiss]
            rows.append((str(probes), *times, *(number(ratio, 2) for ratio in ratios)))
        subjects = here[0]["subjects"]
        lines += [f"K = {spaced(subjects)}, d = {dim}, {threads} thread{'s' if threads > 1 else ''}:", ""]
        lines += [*table(head, rows, "r" * len(head)), ""]
    return lines[:-1]


def _memory(result: Result) -> list[str]:
    if not result.get("comparison"):
        return []
    rows = [row for row in result["comparison"] if row.get("peak_mb") is not None]
    if not rows:
        return ["This system does not tell a process its own memory."]
    most = max(row["probes"] for row in rows)
    some = [row for row in rows if row["probes"] == most and row["threads"] == max(r["threads"] for r in rows)]
    dims = [dim for (dim,) in distinct(some, "dim")]
    cells = {(row["system"], row["dim"]): row["peak_mb"] for row in some}
    cells_of = [
        (f"`{name}`", *(number(cells.get((name, dim)), 0) for dim in dims))
        for name in SYSTEMS
        if any((name, dim) in cells for dim in dims)
    ]
    head = ("system", *(f"d = {dim}, MB" for dim in dims))
    return [
        f"What a call takes beside what was resident before, {most} probes (FAISS holds a copy of the gallery, which is not "
        "counted):",
        "",
        *table(head, cells_of, "l" + "r" * len(dims)),
    ]


def _growth(result: Result) -> list[str]:
    mapped = result.get("mapped") or {}
    rows = [row for row in [*result.get("growth", []), *mapped.get("rows", [])] if row["system"] == "holue"]
    if not rows:
        return []
    on_disk = {row["subjects"] for row in mapped.get("rows", [])}
    cells = [
        (
            spaced(row["subjects"]) + (" (from disk)" if row["subjects"] in on_disk else ""),
            str(row["dim"]),
            str(row["probes"]),
            number(row["median_ms"], 1),
            f"{1e6 * row['median_ms'] / row['subjects'] / row['probes']:.2f}",
            number(row.get("ratio_to_sgemm"), 2),
            number(row["peak_mb"], 1),
        )
        for row in rows
    ]
    head = ("subjects", "d", "probes", "holue, ms", "ns per score", "holue / sgemm", "own memory, MB")
    lines = [f"{rows[0]['threads']} threads:", "", *table(head, cells, "r" * len(head))]
    if "skipped" in mapped:
        lines += ["", f"The gallery on disk was not measured: {mapped['skipped']}."]
    return lines


def _other_costs(result: Result) -> list[str]:
    rows = []
    if result.get("latency"):
        x = result["latency"]
        what = f"`identify` of one probe, K = {spaced(x['subjects'])}, d = {x['dim']}"
        rows.append((what, f"p50 {x['p50_ms']:.1f} ms, p99 {x['p99_ms']:.1f} ms", ""))
    for row in result.get("other_costs", []):
        counts = ", ".join(f"{spaced(row[unit])} {unit}" for unit in ("samples", "probes", "resamples") if unit in row)
        dim = f", d = {row['dim']}" if "dim" in row else ""
        taken = f"{row['seconds']:.2f} s ({row['processor_seconds']:.2f} s of processors)"
        rows.append((f"{row['cost']}: {counts}{dim}", taken, number(row["peak_mb"], 0)))
    for state, title in (("cached", "compiled before"), ("compiling", "the very first, compiling")):
        for step, seconds in (result.get("start") or {}).get(state, {}).items():
            rows.append((f"a new process, {title}: {step}", f"{seconds:.2f} s", ""))
    lines = table(("what", "time", "own memory, MB"), rows, "lrr") if rows else []
    if "evaluation" in result:
        x = result["evaluation"]
        lines += [
            *([""] if lines else []),
            f"A whole evaluation at IJB-C's size ({x['gallery_subjects']} subjects, {spaced(x['probes'])} probes, "
            f"d = {x['dim']}, {len(x['methods'])} methods, {len(x['operating_points'])} operating points, "
            f"{x['resamples']} resamples) took {x['seconds']:.0f} s and {x['peak_rss_bytes'] / 1e9:.2f} GB.",
        ]
    return lines
