"""Quality of a sample as the page tells it, and the link to its original."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from holue.embedding.faces.measures import in_words
from holue.store.values import Sample

Measured = Mapping[str, float] | None
"""The measures of a face, where the sample came as a photograph."""


def poorness(sample: Sample, measures: Measured) -> tuple[float, int, float]:
    """Samples in this order begin with the poorest: by concentration, else by what is poor about the face, else by its size."""
    kappa = float("-inf") if sample.concentration is None else sample.concentration
    return (kappa, 0, 0.0) if measures is None else (kappa, -in_words(measures).count(","), measures["size"])


def quality_text(sample: Sample, measures: Measured) -> str:
    """How good a sample is."""
    parts = [] if measures is None else [in_words(measures)]
    if sample.concentration is not None:
        parts.append(f"concentration {sample.concentration:.0f}")
    return ", ".join(parts) or "quality unknown"


def link_to_original(template: str | None, origin: str | None) -> str | None:
    """The address of the original; what is not plain in an origin is escaped, so that it stays below the template's path.

    >>> link_to_original("https://archive.example/photos/{origin}", "2026/no 7.jpg?x")
    'https://archive.example/photos/2026/no%207.jpg%3Fx'
    """
    if template is None or not origin:
        return None
    plain = "/".join(quote(part, safe="") for part in origin.split("/") if part not in ("", ".", ".."))
    return template.replace("{origin}", plain)
