"""Audit page: the findings of a gallery audit as one self-contained HTML page, with pictures where there are any."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holue.evaluation.report.page_template import filled_page
from holue.recognition.audit.audit import GalleryAudit
from holue.recognition.audit.discrimination import Discrimination

WIDTH, HEIGHT = 600, 160
SHOWN = 100
"""Findings of one kind on the page; all of them are in the JSON."""

Picture = Callable[[str], bytes | None]
"""The encoded image of a sample by its id, or None where there is none."""

_MEDIA_TYPES = {
    b"\xff\xd8": "image/jpeg",
    b"\x89P": "image/png",
    b"GI": "image/gif",
    b"RI": "image/webp",
    b"BM": "image/bmp",
}


@dataclass(frozen=True)
class Column:
    """A heading and how to write its cell."""

    head: str
    text: Callable[[Any], str]
    is_name: bool = False


@dataclass(frozen=True)
class Section:
    """One kind of finding, with the words that explain it."""

    kind: str
    title: str
    meaning: str
    columns: tuple[Column, ...]


def _cosine(name: str, head: str) -> Column:
    return Column(head, lambda finding: f"{getattr(finding, name):.3f}")


def _share(name: str, head: str) -> Column:
    return Column(head, lambda finding: f"{getattr(finding, name):.2g}")


def _word(name: str, head: str) -> Column:
    return Column(head, lambda finding: str(getattr(finding, name)), is_name=True)


SECTIONS = (
    Section(
        "mislabelled",
        "Samples under the wrong name",
        "Closer to another subject than to the rest of their own.",
        (
            _word("sample", "sample"),
            _word("subject", "enrolled as"),
            _word("looks_like", "looks like"),
            _cosine("own_score", "own score"),
            _cosine("other_score", "other score"),
            _cosine("probability", "probability"),
            _share("cost_fnir", "cost, FNIR"),
        ),
    ),
    Section(
        "duplicates",
        "Subjects enrolled twice",
        "Two ids that are likely one person or animal. Relatives and twins can be among them: look before you merge.",
        (
            _word("first", "first"),
            _word("second", "second"),
            _cosine("score", "score"),
            _cosine("probability", "probability"),
            _share("cost_fnir", "cost, FNIR"),
        ),
    ),
    Section(
        "look_alikes",
        "Look-alikes",
        "Different subjects whose references would be accepted for each other at this threshold.",
        (
            _word("first", "first"),
            _word("second", "second"),
            _cosine("score", "score"),
            _share("probability_taken", "P(taken for the other)"),
            _share("observed_taken", "observed"),
            _share("cost_fnir", "cost, FNIR"),
        ),
    ),
    Section(
        "poor_references",
        "Poor references",
        "Subjects whose samples are of unusually low quality: enrol them anew.",
        (
            _word("subject", "subject"),
            Column("quality", lambda finding: f"{finding.quality:.4g}"),
            Column("typical", lambda finding: f"{finding.typical:.4g}"),
            _share("cost_fnir", "cost, FNIR"),
        ),
    ),
    Section(
        "hubs",
        "Hubs",
        "Subjects who attract strangers: far more others have them as the nearest than chance allows.",
        (
            _word("subject", "subject"),
            _share("attracted", "share attracted"),
            Column("times the expected", lambda finding: f"{finding.times_expected:.1f}"),
            _share("cost_fpir", "cost, FPIR"),
        ),
    ),
)


def audit_page(audit: GalleryAudit, *, name: str = "gallery", picture: Picture | None = None) -> str:
    """The page; it asks nothing of the network."""
    sections = [
        {
            "section": section,
            "count": len(getattr(audit, section.kind)),
            "rows": [
                {
                    "cells": [column.text(finding) for column in section.columns],
                    "pictures": _pictures(finding.samples, picture),
                }
                for finding in getattr(audit, section.kind)[:SHOWN]
            ],
        }
        for section in SECTIONS
    ]
    return filled_page(
        "holue.evaluation.report",
        "audit",
        audit=audit,
        name=name,
        sections=sections,
        shown=SHOWN,
        with_pictures=picture is not None,
        own_shape=_outline(audit.discrimination.own, audit.discrimination),
        other_shape=_outline(audit.discrimination.best_other, audit.discrimination),
        threshold_at=_place(audit.point.threshold, audit.discrimination),
    )


def _outline(shares: tuple[float, ...], of: Discrimination) -> str:
    """A histogram as points of a polygon, in a box of ``WIDTH`` by ``HEIGHT``, both histograms to one scale."""
    highest = max(*of.own, *of.best_other) or 1.0
    heights = [HEIGHT * (1 - share / highest) for share in shares]
    places = [WIDTH * i / len(shares) for i in range(len(shares) + 1)]
    steps = [(x, y) for i, y in enumerate(heights) for x in places[i : i + 2]]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in [(0, HEIGHT), *steps, (WIDTH, HEIGHT)])


def _place(score: float, of: Discrimination) -> float:
    """Where a score lies across the box; a threshold beyond it is drawn at its border."""
    low, high = of.edges[0], of.edges[-1]
    return round(WIDTH * min(max((score - low) / (high - low), 0.0), 1.0), 1)


def _pictures(samples: tuple[str, ...], picture: Picture | None) -> list[tuple[str, str]]:
    if picture is None:
        return []
    found = [(sample, picture(sample)) for sample in dict.fromkeys(samples)]
    return [(sample, _data_uri(content)) for sample, content in found if content]


def _data_uri(content: bytes) -> str:
    kind = _MEDIA_TYPES.get(content[:2], "image/jpeg")
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
