"""Store page: the parts of the speed page about durable enrolments, the living gallery, and other stores."""

from __future__ import annotations

from holue.bench.page.markdown import distinct, number, spaced, table
from holue.bench.sections.section import Result, Row

COLUMNS = {
    "enroll_s": ("enrolled in batches, per s", True),
    "remove_one_s": ("removed one by one, per s", True),
    "remove_s": ("removed in batches, per s", True),
    "open_s": ("opened and first answer, ms", False),
    "one_s": ("one probe, ms", False),
    "many_s": ("64 probes, ms", False),
}
"""What is measured of a peer in seconds, its title, and whether it is shown as a rate."""


def store_part(found: Result) -> list[str]:
    """Durable enrolments; nothing where none were measured."""
    rows = []
    if "batches" in found:
        x = found["batches"]
        beside = (
            f"the same bytes written and synced: {_per_second(x['bare_rows_per_second'])} rows/s; "
            f"{x['processor_us']:.1f} µs of processors a row"
        )
        what = f"batches of {spaced(x['batch'])}, d = {x['dim']}"
        rows.append((what, f"{_per_second(x['rows_per_second'])} rows/s", beside))
    if "singles" in found:
        x = found["singles"]
        beside = (
            f"{x['ratio']:.2f} × a bare append-and-sync of its row ({x['bare_ms']:.2f} ms); "
            f"{x['processor_ms']:.2f} ms of processors, the bare one's included"
        )
        rows.append(("one subject", f"{x['median_ms']:.2f} ms", beside))
    if "callers" in found:
        x = found["callers"]
        beside = f"{x['times']:.1f} × one caller's {_per_second(x['one_per_second'])}"
        rows.append((f"{x['callers']} callers at once", f"{_per_second(x['many_per_second'])} subjects/s", beside))
    head = ("enrolment", "", "beside it")
    intro = "Into the embedded store, durable when the call returns; bare writes to the same disk take turns with them."
    return [intro, "", *table(head, rows, "lrl")] if rows else []


def live_part(rows: list[Row]) -> list[str]:
    """The living gallery by size."""
    measured = [row for row in rows if "open_s" in row]
    lines = [f"K = {spaced(row['subjects'])} was not measured: {row['skipped']}." for row in rows if "skipped" in row]
    if not measured:
        return lines
    head = ("", *(f"{spaced(row['subjects'])} subjects" for row in measured))
    entries = (
        ("enrolling all, in batches of 50\u202f000, s", "fill_s", 1),
        ("closing after it, which keeps the templates, s", "close_s", 1),
        ("opening, s", "open_s", 3),
        ("the first answer after it, s", "first_answer_s", 3),
        ("enrol one subject, durable and visible, ms", "enroll_ms", 1),
        ("remove one subject, durable and visible, ms", "remove_ms", 1),
        ("one probe, idle, median, ms", "idle_p50_ms", 1),
        ("one probe, idle, 99th percentile, ms", "idle_p99_ms", 1),
        ("one probe while subjects come and go, 99th percentile, ms", "busy_p99_ms", 1),
        ("subjects that came, and went, per second meanwhile", "per_second", 0),
    )
    cells = [(title, *(number(row[key], digits) for row in measured)) for title, key, digits in entries]
    what = f"`holue.open` on a directory, d = {measured[0]['dim']}, one sample per subject, exact search:"
    return [what, "", *table(head, cells, "l" + "r" * len(measured)), *lines]


def peers_part(found: Result) -> list[str]:
    """Other stores beside holue."""
    rows: list[Row] = found.get("rows", [])
    if not rows:
        return []
    lines = [
        "The same vectors and the same order of calls, in turn, in one process that is held to one processor (so are all threads "
        "and the server of PostgreSQL). A change counts as made when it is on disk. Batches are a tenth of the subjects, "
        "removals in batches a hundredth. Opening is timed in a new process after its imports. `found` is the share of the true "
        "five nearest.",
        "",
    ]
    for system, about in distinct(rows, "system", "about"):
        lines.append(f"- `{system}`: {about}")
    for subjects, dim in distinct(rows, "subjects", "dim"):
        here = [row for row in rows if row["subjects"] == subjects]
        head = ("", *(f"{row['system']} {row['version']}" for row in here))
        cells = [(title, *(_shown(row[key], rate) for row in here)) for key, (title, rate) in COLUMNS.items()]
        cells.append(("size on disk, MB", *(number(row["bytes"] / 1e6, 0) for row in here)))
        cells.append(("found", *(number(row["found"], 3) for row in here)))
        lines += ["", f"K = {spaced(subjects)}, d = {dim}:", "", *table(head, cells, "l" + "r" * len(here))]
        kept = [row["template_bytes"] / 1e6 for row in here if row.get("template_bytes")]
        if kept:
            what = "are the kept templates, which make opening fast and can be made again."
            lines += ["", f"Of holue's bytes, {kept[0]:.0f} MB {what}"]
    lines += [f"Not measured: {name}, {why}." for name, why in found.get("skipped", {}).items()]
    return lines


def _shown(seconds: float, rate: bool) -> str:
    if rate:
        per = 1 / seconds
        return spaced(round(per)) if per >= 10 else number(per, 1)
    return number(1e3 * seconds, 1 if seconds >= 0.01 else 2)


def _per_second(rate: float) -> str:
    return spaced(round(rate))
