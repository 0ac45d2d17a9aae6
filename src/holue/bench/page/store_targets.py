"""Store targets: what the store and the living gallery were to reach, also beside other stores."""

from __future__ import annotations

from collections.abc import Iterator

from holue.bench.page.markdown import cut
from holue.bench.page.verdict import Verdict
from holue.bench.sections.live import PER_SECOND
from holue.bench.sections.section import Result, Row

LEVEL = 1.05
"""Times the best peer's time, or bytes, up to which holue counts as level: runs differ by about so much."""
ENOUGH = 0.95
"""Share of the changes asked for that must have been made."""
PEER_COLUMNS = {
    "enroll_s": "enrolling in batches",
    "remove_one_s": "removing one by one",
    "remove_s": "removing in batches",
    "open_s": "opening and the first answer",
    "one_s": "one probe",
    "many_s": "64 probes",
    "bytes": "size on disk",
}


def store_verdicts(result: Result) -> Iterator[Verdict]:
    """Every target that the sections store, live and peers can judge."""
    found = result.get("store", {})
    if "batches" in found:
        x = found["batches"]
        rate, where = x["rows_per_second"], f"batches of {x['batch']}, d = {x['dim']}"
        yield Verdict("50000 durable enrolments a second, in batches", f"{rate:.0f}", where, rate >= 50_000)
    if "singles" in found:
        ratio, where = found["singles"]["ratio"], f"d = {found['singles']['dim']}"
        text = "one durable enrolment at most 1.5 × a bare append-and-sync"
        yield Verdict(text, f"{ratio:.2f}", where, ratio <= 1.5)
    if "callers" in found:
        times = found["callers"]["times"]
        text = f"{found['callers']['callers']} callers enrol at least 4 times as fast as one"
        yield Verdict(text, cut(times), "one subject a call", times >= 4)
    rows = [row for row in result.get("live", []) if "open_s" in row]
    if rows:
        worst = max(rows, key=lambda row: float(row["open_s"]))
        yield Verdict("a gallery open in under 0.5 s", f"{worst['open_s']:.2f} s", _size(worst), worst["open_s"] < 0.5)
        worst = max(rows, key=lambda row: float(row["p99_ratio"]))
        text = "99th percentile of an answer while 100 subjects a second come and go at most 1.5 × idle"
        where = f"{_size(worst)}, {worst['per_second']:.0f} a second"
        # Fewer changes than asked for disturb less: a ratio at a lower rate shows nothing.
        reached = min(row["per_second"] for row in rows) >= ENOUGH * PER_SECOND
        yield Verdict(text, f"{worst['p99_ratio']:.2f}", where, reached and worst["p99_ratio"] <= 1.5)
    yield from _peers(result.get("peers", {}).get("rows", []))


def _peers(rows: list[Row]) -> Iterator[Verdict]:
    ours = [row for row in rows if row["system"] == "holue"]
    for column, title in PEER_COLUMNS.items():
        judged = []
        for own in ours:
            others = [row for row in rows if row["subjects"] == own["subjects"] and row is not own]
            if others:
                best = min(others, key=lambda row: float(row[column]))
                judged.append((own[column] / best[column], own, best))
        if judged:
            ratio, own, best = max(judged, key=lambda entry: float(entry[0]))
            text = f"{title}: ahead of every other store, or level"
            yield Verdict(text, f"{ratio:.2f} × the best other", f"{_size(own)}, {best['system']}", ratio <= LEVEL)


def _size(row: Row) -> str:
    return f"K = {row['subjects']}, d = {row['dim']}"
