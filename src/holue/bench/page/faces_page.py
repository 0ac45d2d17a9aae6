"""Faces page: the part of the speed page about whole photographs."""

from __future__ import annotations

from holue.bench.page.markdown import number, percent, table
from holue.bench.sections.faces import STEPS
from holue.bench.sections.section import Result


def faces_part(found: Result) -> list[str]:
    """What a photograph costs, step by step; nothing where it was not measured."""
    if "skipped" in found:
        return [f"Not measured: {found['skipped']}."]
    if not found.get("rows"):
        return []
    head = (
        "photographs",
        "pixels",
        "found",
        *(f"{name}, ms" for name in STEPS),
        "together, ms",
        "cosine, median",
        "1 %",
    )
    cells = [
        (
            f"{row['count']} {row['photographs']}",
            f"{row['width']} × {row['height']}",
            percent(row["found"]),
            *(number(row[f"{name}_ms"], 1) for name in (*STEPS, "total")),
            *(number(row.get(name), 3) for name in ("cosine_median", "cosine_p01")),
        )
        for row in found["rows"]
    ]
    return [
        "Photographs of Labelled Faces in the Wild, one after the other on one thread, medians: decoding, YuNet, alignment with "
        "all measures, ArcFace. The cosines are with the embeddings of the crops of the same photographs that were aligned "
        "before; in a photograph with several faces the central one is meant.",
        "",
        *table(head, cells, "ll" + "r" * (len(head) - 2)),
    ]
