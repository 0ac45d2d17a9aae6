"""GlyphWorld: clean glyphs enrolled, degraded glyphs searched for, for development and for evaluation.

Glyphs that train a recogniser or its heads never appear here: the model that comes with the package has seen none of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holue.datasets.degradation import ImageLevels
from holue.datasets.glyphs.identities import Glyph, glyphs
from holue.datasets.glyphs.samples import GLYPH_LEVELS, GlyphSamples, draw_samples
from holue.errors import InvalidParameterError

DEVELOPMENT_SHARE = 0.4
"""Of the glyphs left for tasks; the evaluation gallery is the larger one, as galleries grow in use."""
KNOWN_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class GlyphPart:
    """A gallery of clean samples and the probes searched in it; probes of glyphs outside the gallery are non-mated."""

    gallery: GlyphSamples
    probes: GlyphSamples
    known: tuple[Glyph, ...]
    unknown: tuple[Glyph, ...]


@dataclass(frozen=True, eq=False)
class GlyphWorld:
    """Two parts that share no glyph."""

    development: GlyphPart
    evaluation: GlyphPart


def glyph_world(
    seed: int = 0,
    *,
    enrolled_samples: int = 3,
    probes_per_glyph: int = 4,
    subjects: int | None = None,
    levels: ImageLevels = GLYPH_LEVELS,
) -> GlyphWorld:
    """Deal the glyphs out to development and evaluation, half of each enrolled, and render them; the same for the same seed.

    ``subjects`` limits the glyphs enrolled for evaluation (and in proportion everything else) where all are not needed.

    >>> world = glyph_world(subjects=30)
    >>> len(world.evaluation.known), len(world.development.known), len(world.evaluation.probes)
    (30, 20, 240)
    """
    usable = glyphs_for("tasks")
    if subjects is not None:
        needed = round(subjects / KNOWN_SHARE / (1 - DEVELOPMENT_SHARE))
        if subjects < 2 or needed > len(usable):
            most = int(len(usable) * KNOWN_SHARE * (1 - DEVELOPMENT_SHARE))
            raise InvalidParameterError(f"subjects must be 2 to {most}, what the fonts have, got {subjects}")
    rng = np.random.default_rng([seed, 4])
    order = rng.permutation(len(usable))[: None if subjects is None else needed]
    split = round(DEVELOPMENT_SHARE * len(order))

    def part(rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> GlyphPart:
        count = round(KNOWN_SHARE * len(rows))
        known, unknown = (tuple(usable[row] for row in np.sort(some)) for some in (rows[:count], rows[count:]))
        return GlyphPart(
            draw_samples(known, enrolled_samples, seed=seed),
            # Other numbers than the gallery's: no probe is a degraded copy of an enrolled sample.
            draw_samples((*known, *unknown), probes_per_glyph, seed=seed, levels=levels, first=enrolled_samples),
            known,
            unknown,
        )

    return GlyphWorld(part(order[:split]), part(order[split:]))


def glyphs_for(role: str) -> tuple[Glyph, ...]:
    """The glyphs that are for ``network``, ``heads`` or ``tasks``.

    >>> {glyph.role for glyph in glyphs_for("heads")}
    {'heads'}
    """
    return tuple(glyph for glyph in glyphs() if glyph.role == role)
