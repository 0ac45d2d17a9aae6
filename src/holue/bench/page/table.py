"""Table: the numbers of a benchmark as plain text."""

from __future__ import annotations

from holue.bench.page.cluster_page import cluster_part, growth_part
from holue.bench.page.faces_page import faces_part
from holue.bench.page.markdown import number, percent
from holue.bench.page.targets import verdicts
from holue.bench.sections.compressed import as_text as compressed_text
from holue.bench.sections.section import Result, Row

_HEAD = f"{'system':<14}{'median ms':>11}{'quartiles':>19}{'× sgemm':>9}{'× faiss':>9}{'peak MB':>9}{'calls':>7}"


def as_text(result: Result) -> str:
    """What was measured, one block per size: median and quartiles in milliseconds, time relative to the bare product.

    >>> row = {"subjects": 10, "dim": 4, "probes": 1, "threads": 1, "system": "holue", "median_ms": 1.5, "q1_ms": 1.0,
    ...        "q3_ms": 2.0, "calls": 3, "ratio_to_sgemm": 1.07, "peak_mb": 0.2}
    >>> print(as_text({"comparison": [row]}).splitlines()[3])
    holue               1.50        1.00 – 2.00     1.07        –      0.2      3
    """
    lines = []
    if "machine" in result:
        m = result["machine"]
        lines.append(f"{m['processors']} processors, {m['architecture']} {m['vectors']}, {m['blas']}")
    lines += [f"not measured: {name}, {why}" for name, why in result.get("skipped", {}).items()]
    for title, rows in (("", result.get("comparison", [])), ("growth: ", result.get("growth", []))):
        lines += _blocks(title, rows)
    mapped = result.get("mapped") or {}
    lines += _blocks("memory-mapped: ", mapped.get("rows", []))
    if "skipped" in mapped:
        lines.append(f"memory-mapped gallery not measured: {mapped['skipped']}")
    if result.get("compressed"):
        lines += ["", "compressed: times faster than float32", compressed_text(result["compressed"])]
    lines += _approximate(result.get("approximate", {}))
    if result.get("latency"):
        x = result["latency"]
        lines += [
            "",
            f"identify, one probe, K = {x['subjects']}, d = {x['dim']}: p50 {x['p50_ms']:.2f} ms, p99 {x['p99_ms']:.2f} ms",
        ]
    lines += ["", *(_cost(row) for row in result.get("other_costs", []))]
    for state, seconds in (result.get("start") or {}).items():
        lines.append(
            f"a new process, {state}: " + ", ".join(f"{step} {taken:.2f} s" for step, taken in seconds.items())
        )
    lines += faces_part(result.get("faces", {}))
    lines += cluster_part(result.get("cluster", {}))
    lines += growth_part(result.get("cluster_growth", {}), result.get("cluster", {}))
    if "evaluation" in result:
        x = result["evaluation"]
        lines.append(f"{x['benchmark']}: {x['seconds']:.1f} s, {x['peak_rss_bytes'] / 1e9:.2f} GB")
    lines += ["", *_judged(result)]
    if not result.get("finished", True):
        lines.append("interrupted: some sizes are missing")
    return "\n".join(lines).rstrip()


def _approximate(found: Result) -> list[str]:
    rows = found.get("speed", [])
    if not rows:
        return []
    lines = ["", "approximate: times faster than the exact scan"]
    lines.append(f"{'subjects':>10}{'dim':>6}{'probes':>8}{'threads':>8}  {'system':<22}{'median ms':>11}{'faster':>8}")
    for row in rows:
        place = f"{row['subjects']:>10}{row['dim']:>6}{row['probes']:>8}{row['threads']:>8}"
        lines.append(f"{place}  {row['system']:<22}{row['median_ms']:>11.2f}{row['times_faster']:>8.2f}")
    for case in found.get("accuracy", []):
        lines.append(
            f"K = {case['subjects']}, d = {case['dim']}, index made in {case['build_seconds']:.0f} s, {case['probes']} probes: "
            f"{percent(case['decisions_identical'])} of decisions identical"
        )
        for who in ("mated", "strangers"):
            at = case[who]["kappa_over_t"]
            off = at["log_mass_off"]
            lines.append(
                f"  {who}: log-mass at κ/T off by {off['median']:.4f} in the median, {off['q99']:.4f} at 99 %, "
                f"{off['largest']:.4f} at most; {percent(at['covered'])} within three standard errors"
            )
    if "skipped" in found:
        lines.append(f"approximate evidence on disk not measured: {found['skipped']}")
    return lines


def _judged(result: Result) -> list[str]:
    return [
        f"{'met   ' if one.met else 'MISSED'}  {one.target}: {one.measured} ({one.where})" for one in verdicts(result)
    ]


def _cost(row: Row) -> str:
    counts = ", ".join(f"{row[unit]} {unit}" for unit in ("samples", "probes", "resamples") if unit in row)
    return f"{row['cost']}, {counts}: {row['seconds']:.2f} s, {number(row['peak_mb'], 0)} MB"


def _blocks(title: str, rows: list[Row]) -> list[str]:
    lines, last = [], None
    for row in rows:
        place = row["subjects"], row["dim"], row["probes"], row["threads"]
        if place != last:
            lines += ["", f"{title}K = {place[0]}, d = {place[1]}, {place[2]} probes, {place[3]} threads", _HEAD]
            last = place
        spread = f"{row['q1_ms']:.2f} – {row['q3_ms']:.2f}"
        lines.append(
            f"{row['system']:<14}{row['median_ms']:>11.2f}{spread:>19}{number(row.get('ratio_to_sgemm'), 2):>9}"
            f"{number(row.get('ratio_to_faiss'), 2):>9}{number(row.get('peak_mb'), 1):>9}{row['calls']:>7}"
        )
    return lines
