"""Approximate page: the part of the speed page about reading less than the whole gallery."""

from __future__ import annotations

from holue.bench.page.markdown import cut, distinct, number, percent, spaced, table
from holue.bench.sections.section import Result, Row

GROWTH_CAPTION = (
    "Time per probe against the size of the gallery (lower is better): the exact scan, and approximate evidence with its "
    "standard errors. Bars span the quartiles, dashed lines are two threads; dotted, growth like √K."
)
SHARPNESSES = {"kappa": "κ", "kappa_over_t": "κ/T"}


def approximate_part(found: Result, figures: str | None = None) -> list[str]:
    """Speed, growth, index and accuracy; nothing where nothing was measured."""
    if not found.get("speed"):
        return []
    lines = [
        "The inverted lists nearest to a probe are read exactly; the sums over all other subjects are estimated, with a standard "
        "error (see [Large galleries](large-galleries.md)). Measured in turn with the exact scan of the same gallery, whose "
        "subjects come in families of look-alikes; FAISS searches the same lists, as many of them, for the top alone.",
        "",
    ]
    if figures is not None:
        lines += [f"![{GROWTH_CAPTION}]({figures}/approximate.svg)", ""]
    lines += _speed(found["speed"])
    if "skipped" in found:
        lines += ["", f"The gallery on disk was not measured: {found['skipped']}."]
    lines += ["", "The index, at the κ that accepts 1 in 100 strangers:", "", *_index(found["speed"])]
    if found["accuracy"]:
        lines += [
            "",
            "How far the answers are from those of the exact scan. Decisions are acceptance and the accepted subject; covered "
            "are the probes whose true log-mass is within three standard errors:",
            "",
            *_accuracy(found["accuracy"]),
        ]
    return lines


def _speed(rows: list[Row]) -> list[str]:
    names = [name for (name,) in distinct(rows, "system")]
    lines = []
    for subjects, probes, threads in distinct(rows, "subjects", "probes", "threads"):
        place = {"subjects": subjects, "probes": probes, "threads": threads}
        here = {row["system"]: row for row in rows if place.items() <= row.items()}
        times = [number(here.get(name, {}).get("median_ms"), 2) for name in names]
        faster = cut(here["approximate"]["times_faster"])
        on_disk = " (from disk)" if here["exact"].get("on_disk") else ""
        lines.append((spaced(subjects) + on_disk, str(probes), str(threads), *times, faster))
    head = ("K", "probes", "threads", *(f"{name}, ms" for name in names), "approximate, times faster than exact")
    return table(head, lines, "r" * len(head))


def _index(rows: list[Row]) -> list[str]:
    keys = ("subjects", "dim", "concentration", "lists", "lists_read", "sampled", "build_seconds")
    lines = [
        (spaced(k), str(d), f"{kappa:.0f}", str(lists), str(read), spaced(sampled), f"{seconds:.0f}")
        for k, d, kappa, lists, read, sampled, seconds in distinct(rows, *keys)
    ]
    head = ("K", "d", "κ", "lists", "of them read", "rows sampled", "made in, s")
    return table(head, lines, "r" * len(head))


def _accuracy(cases: list[Result]) -> list[str]:
    lines = []
    for case in cases:
        for who in ("mated", "strangers"):
            for label, sharpness in SHARPNESSES.items():
                off = case[who][label]["log_mass_off"]
                lines.append(
                    (
                        spaced(case["subjects"]),
                        spaced(case["probes"]),
                        percent(case["decisions_identical"]),
                        who,
                        percent(case[who]["top_identical"]),
                        sharpness,
                        *(f"{off[key]:.5f}" for key in ("median", "q99", "largest")),
                        percent(case[who][label]["covered"]),
                    )
                )
    head = (
        "K",
        "probes",
        "same decision",
        "who",
        "same best subject",
        "at",
        "log-mass off: median",
        "99 %",
        "largest",
    )
    return table((*head, "covered"), lines, "rrrlrlrrrr")
