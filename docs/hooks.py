"""Hooks: what the site needs beyond Markdown."""

import re

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(?=<code>)")


def on_page_content(html: str, **_: object) -> str:
    """Docstrings mark references as ``:meth:`fit```; on the page the name alone is enough."""
    return ROLE.sub("", html)
