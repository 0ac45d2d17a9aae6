"""Compressed page: the part of the speed page about galleries in fewer bytes."""

from __future__ import annotations

from holue.bench.page.markdown import cut, distinct, number, spaced, table
from holue.bench.sections.section import Row

FLOAT32, FAISS = "holue", "faiss"


def compressed_part(rows: list[Row]) -> list[str]:
    """How many times faster each form is than float32, and what it loses; nothing without rows."""
    if not rows:
        return []
    forms = [name for (name,) in distinct(rows, "system") if name.startswith("holue ")]
    return [
        "The same answer from codes of two bytes (`float16`) or one (`int8`) per coordinate, in turn with holue's own float32 "
        "scan and with FAISS's search for the one nearest subject among float32 rows. The top five are exact in every form; "
        "log-mass and mean score carry certified bounds (see [Large galleries](large-galleries.md)).",
        "",
        *_speed(rows, forms),
        "",
        "What the codes take, and the largest bound on the log-mass of any probe above:",
        "",
        *_bounds(rows),
    ]


def _speed(rows: list[Row], forms: list[str]) -> list[str]:
    lines = []
    with_faiss = any(row["system"] == FAISS for row in rows)
    for subjects, dim, probes, threads in distinct(rows, "subjects", "dim", "probes", "threads"):
        place = {"subjects": subjects, "dim": dim, "probes": probes, "threads": threads}
        here = {row["system"]: row for row in rows if place.items() <= row.items()}
        times = [number(here.get(name, {}).get("median_ms"), 2) for name in (FLOAT32, *forms)]
        faster = [cut(here.get(name, {}).get("times_faster")) for name in forms]
        other = _beside_faiss(here, forms[-1]) if with_faiss else ()
        lines.append((spaced(subjects), str(dim), str(probes), str(threads), *times, *faster, *other))
    names = [_form(name) for name in forms]
    head = ("K", "d", "probes", "threads", "float32, ms", *(f"{name}, ms" for name in names))
    head += tuple(f"{name}, times faster" for name in names)
    if with_faiss:
        head += ("FAISS, ms", f"FAISS / {names[-1]}")
    return table(head, lines, "r" * len(head))


def _beside_faiss(here: dict[str, Row], form: str) -> tuple[str, str]:
    """FAISS's time, and how many times faster than it a form is."""
    if FAISS not in here or form not in here:
        return "–", "–"
    return number(here[FAISS]["median_ms"], 2), cut(here[form]["times_faster"] / here[FAISS]["times_faster"])


def _bounds(rows: list[Row]) -> list[str]:
    lines = []
    for subjects, dim in distinct(rows, "subjects", "dim"):
        some = [row for row in rows if (row["subjects"], row["dim"]) == (subjects, dim)]
        for name in (name for (name,) in distinct(some, "system") if name != FAISS):
            here = [row for row in some if row["system"] == name]
            bounds = [row["largest_log_mass_bound"] for row in here if "largest_log_mass_bound" in row]
            shown = [f"{max(column):.1g}" for column in zip(*bounds)] or ["–", "–"]
            lines.append((spaced(subjects), str(dim), _form(name), number(here[0]["gallery_mb"], 0), *shown))
    return table(("K", "d", "form", "MB", "bound at κ", "bound at κ/T"), lines, "rrlrrr")


def _form(system: str) -> str:
    return "float32" if system == FLOAT32 else system.removeprefix("holue ")
