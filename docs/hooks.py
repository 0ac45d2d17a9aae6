"""Hooks: what the site needs beyond Markdown."""

import html as entities
import re

from latex2mathml.converter import convert

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(?=<code>)")
FORMULA = re.compile(r'<div class="arithmatex">\s*\\\[(?P<latex>.*?)\\\]\s*</div>', re.DOTALL)
LOGARITHM_AND_SPACE = r'<mi>ln</mi><mspace width="0.17em"/>'
LOGARITHM = re.compile(r"<mi>ln</mi>(?!<mo)")


def on_page_content(html: str, **_: object) -> str:
    """Docstrings mark references as ``:meth:`fit```; on the page the name alone is enough. Formulas become MathML."""
    return FORMULA.sub(_mathml, ROLE.sub("", html))


def _mathml(formula: re.Match[str]) -> str:
    """MathML is drawn by the browser itself: no script, no font, nothing fetched."""
    latex = entities.unescape(formula["latex"]).strip()
    parts = [
        part.strip() for part in latex.split(r"\qquad")
    ]  # of one line; on a narrow screen they stand below each other
    if any(part.count("{") != part.count("}") for part in parts):
        parts = [latex]
    drawn = "".join(convert(part, display="block") for part in parts)
    return f'<div class="formula">{LOGARITHM.sub(LOGARITHM_AND_SPACE, drawn)}</div>'
