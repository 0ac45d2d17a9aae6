"""Page: the demo as one self-contained HTML page that opens offline."""

from __future__ import annotations

from collections.abc import Mapping

from holue.demo.cards import probe_card
from holue.demo.curves import Curves
from holue.demo.groups import SHOWN, ProbeGroup
from holue.demo.passages import INK, Passages
from holue.demo.scene import SUBJECTS, Scene
from holue.evaluation.report.drawing import Drawing
from holue.evaluation.report.page_template import filled_page


def demo_page(
    scene: Scene, groups: list[ProbeGroup], curves: Curves, passages: Passages, drawings: Mapping[str, Drawing]
) -> str:
    """The page, with every picture and figure inside it."""
    return filled_page(
        "holue.demo",
        "demo",
        figures=drawings.values(),
        extra="demo",
        scene=scene,
        point=scene.reading.point,
        rates=scene.error_rates,
        counts=scene.outcomes.counts,
        groups=[(group, [probe_card(scene, int(row)) for row in group.shown]) for group in groups],
        shown=SHOWN,
        curves=curves,
        passages=passages,
        ink=INK,
        subjects=SUBJECTS,
    )
