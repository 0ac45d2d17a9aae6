"""Glyph: one identity of the glyph world, and the side of the split it is on for good."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

import numpy as np

from holue.datasets.glyphs.characters import character_name, glyph_characters
from holue.datasets.glyphs.fonts import GlyphFont, glyph_fonts
from holue.datasets.glyphs.homoglyphs import homoglyphs

ROLES = {"network": 0.5, "heads": 0.12, "tasks": 0.38}
"""What a glyph is for, by share: it trains the recogniser, or the heads upon it, or is left for development and evaluation."""


@dataclass(frozen=True)
class Glyph:
    """A character, or several that no font distinguishes: they are one subject, named by the first."""

    characters: tuple[str, ...]
    fonts: tuple[GlyphFont, ...]

    @property
    def label(self) -> str:
        """The first character."""
        return self.characters[0]

    @property
    def name(self) -> str:
        """The Unicode name of the first character."""
        return character_name(self.label)

    @property
    def role(self) -> str:
        """``network``, ``heads`` or ``tasks``: by a hash of the label, so that no other font or character can change it."""
        number = int.from_bytes(hashlib.sha256(self.label.encode()).digest()[:8], "little") / 2**64
        bounds = np.cumsum(list(ROLES.values()))
        return list(ROLES)[min(int(np.searchsorted(bounds, number, side="right")), len(ROLES) - 1)]

    def draw_font(self, rng: np.random.Generator) -> GlyphFont:
        """A family, then a face of it: the family with most faces does not come up most."""
        families = sorted({font.family for font in self.fonts})
        family = families[int(rng.integers(len(families)))]
        faces = [font for font in self.fonts if font.family == family]
        return faces[int(rng.integers(len(faces)))]

    def drawn_by(self, font: GlyphFont) -> str:
        """The first of its characters that ``font`` has."""
        return next(character for character in self.characters if font.draws(character))


@cache
def glyphs() -> tuple[Glyph, ...]:
    """Every identity, in the order of Unicode.

    >>> by_label = {glyph.label: glyph for glyph in glyphs()}
    >>> by_label["A"].characters, "Α" in by_label
    (('A', 'Α', 'А'), False)
    >>> by_label["Ж"].name
    'cyrillic capital letter zhe'
    """
    groups = {group[0]: group for group in homoglyphs()}
    later = {character for group in groups.values() for character in group[1:]}
    fonts = glyph_fonts()

    def made(characters: tuple[str, ...]) -> Glyph:
        return Glyph(characters, tuple(font for font in fonts if any(map(font.draws, characters))))

    return tuple(made(groups.get(text, (text,))) for text in glyph_characters() if text not in later)
