"""Changes page: the part of the speed page about subjects who come and go."""

from __future__ import annotations

from holue.bench.page.markdown import number, spaced, table
from holue.bench.sections.section import Row


def changes_part(rows: list[Row]) -> list[str]:
    """What a change costs in each search, and the scans after it; nothing without rows."""
    if not rows:
        return []
    probes = [gone["probes"] for gone in rows[0]["gone"]]
    head = (
        "search",
        "enrol, ms",
        "remove, ms",
        "enrol, MB",
        "remove, MB",
        "question before, ms",
        "next / before, median",
        "p99",
        *(f"a tenth gone, {n} probe{'s' if n > 1 else ''}" for n in probes),
    )
    cells = [
        (
            row["search"],
            *(number(row[name], 2) for name in ("enroll_ms", "remove_ms", "enroll_mb", "remove_mb")),
            *(number(row[name], 2) for name in ("before_ms", "ratio", "ratio_p99")),
            *(number(gone["ratio"], 2) for gone in row["gone"]),
        )
        for row in rows
    ]
    first = rows[0]
    return [
        f"K = {spaced(first['subjects'])}, d = {first['dim']}, one thread: {first['changes']} changes of one subject each, "
        "enrolments and removals in turn, and questions of one probe between. The last columns are scans of a gallery that a "
        "tenth of the subjects has left, relative to the same before, round by round.",
        "",
        *table(head, cells, "l" + "r" * (len(head) - 1)),
    ]
