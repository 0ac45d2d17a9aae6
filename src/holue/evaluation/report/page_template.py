"""Page template: a self-contained HTML page from a template of the package and what belongs in it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from holue.errors import MissingDependencyError
from holue.evaluation.report.drawing import Drawing


def filled_page(
    package: str, template: str, *, figures: Iterable[Drawing] = (), extra: str = "report", **values: Any
) -> str:
    """``templates/<template>.html.jinja`` of a package with the values in it, escaped; a value that is missing is an error.

    ``figures`` are drawn inside the page, so that it asks nothing of the network: the template finds each under its name, as
    a pair of picture and caption. ``extra`` is what to install where jinja2 is missing.
    """
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingDependencyError("jinja2", extra) from error
    source = (files(package) / "templates" / f"{template}.html.jinja").read_text("utf-8")
    page = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    drawn = {figure.name: (Markup(figure.svg_element), figure.caption) for figure in figures}
    return page.from_string(source).render(figures=drawn, **values).strip() + "\n"
