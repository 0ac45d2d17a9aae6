"""GlyphSamples: renderings of glyphs, clean or degraded, with what is known about each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.datasets.degradation import ImageLevels, draw_image_degradation, sample_generator
from holue.datasets.glyphs.identities import Glyph
from holue.datasets.glyphs.rendering import SIZE, Pixels, draw_variation, render
from holue.embedding.models.embedding_file import Names
from holue.errors import InvalidParameterError

CLEAN = "clean"
GLYPH_LEVELS = ImageLevels((32, 22, 16, 12), (0.6, 1.2), (20.0, 40.0), (0.04, 0.1), sizes_only=0.5)
"""How probes are degraded: from the full 32 pixels down to 12, and half of them also in another way. A letter is some 15 pixels
high, and a tenth of the image is enough to hide it."""


@dataclass(frozen=True, eq=False)
class GlyphSamples:
    """Images (n, 32, 32) of bytes, the label of the glyph each shows, the level of its degradation, its font and a name."""

    images: Pixels
    subject_id: Names
    level: Names
    font: Names
    sample_id: Names

    def __len__(self) -> int:
        return len(self.images)

    def take(self, rows: npt.NDArray[Any]) -> GlyphSamples:
        """The samples at ``rows`` (indices or a mask)."""
        columns = (self.images, self.subject_id, self.level, self.font, self.sample_id)
        return GlyphSamples(*(column[rows] for column in columns))


def draw_samples(
    glyphs: Sequence[Glyph],
    each: int,
    *,
    seed: int,
    levels: ImageLevels | None = None,
    first: int = 0,
) -> GlyphSamples:
    """``each`` renderings of every glyph; with ``levels`` each is degraded as drawn, without they are clean.

    A sample depends on the seed, the label and its number alone, whatever else is drawn; ``first`` numbers them from there.

    >>> from holue.datasets.glyphs.identities import glyphs
    >>> samples = draw_samples(glyphs()[:3], 2, seed=0, levels=GLYPH_LEVELS)
    >>> samples.images.shape, samples.subject_id.tolist()
    ((6, 32, 32), ['!', '!', '"', '"', '#', '#'])
    """
    if each < 1:
        raise InvalidParameterError(f"each glyph needs at least 1 sample, got {each}")
    drawn = [_sample(glyph, number, seed, levels) for glyph in glyphs for number in range(first, first + each)]
    return _stacked(drawn)


def joined_samples(*parts: GlyphSamples) -> GlyphSamples:
    """The samples of all parts, one after the other."""
    columns = ("images", "subject_id", "level", "font", "sample_id")
    return GlyphSamples(*(np.concatenate([getattr(part, column) for part in parts]) for column in columns))


def _sample(glyph: Glyph, number: int, seed: int, levels: ImageLevels | None) -> tuple[Pixels, str, str, str, str]:
    rng = sample_generator(seed, number, glyph.label)
    font = glyph.draw_font(rng)
    image, level = render(glyph.drawn_by(font), font, draw_variation(rng), rng), CLEAN
    if levels is not None:
        degradation = draw_image_degradation(rng, levels)
        image, level = degradation.apply(image, rng), degradation.label
    return image, glyph.label, level, font.name, f"{glyph.label}/{number} ({font.name}, {level})"


def _stacked(drawn: Iterable[tuple[Pixels, str, str, str, str]]) -> GlyphSamples:
    columns = list(zip(*drawn))
    images = np.stack(columns[0]) if columns else np.empty((0, SIZE, SIZE), np.uint8)
    names = [np.array(column, dtype=np.str_) for column in columns[1:]] or [np.empty(0, np.str_)] * 4
    return GlyphSamples(images, *names)
