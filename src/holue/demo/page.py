"""Page: the demo as one self-contained HTML page that opens offline."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files

from holue.demo.cards import probe_card
from holue.demo.curves import Curves
from holue.demo.groups import SHOWN, ProbeGroup
from holue.demo.passages import INK, Passages
from holue.demo.scene import SUBJECTS, Scene
from holue.errors import MissingDependencyError
from holue.evaluation.drawing import Drawing


def demo_page(
    scene: Scene, groups: list[ProbeGroup], curves: Curves, passages: Passages, drawings: Mapping[str, Drawing]
) -> str:
    """The page, with every picture and figure inside it."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingDependencyError("jinja2", "demo") from error
    source = (files("holue.demo") / "templates" / "demo.html.jinja").read_text("utf-8")
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    rendered = page.from_string(source).render(
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
        figures={name: (Markup(drawing.svg_element), drawing.caption) for name, drawing in drawings.items()},
    )
    return rendered.strip() + "\n"
