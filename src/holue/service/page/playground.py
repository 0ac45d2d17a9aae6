"""Playground: a character that somebody draws, chooses, degrades or morphs, as the image that the model will see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holue.datasets.degradation import ImageDegradation
from holue.datasets.glyphs.fonts import GlyphFont
from holue.datasets.glyphs.identities import Glyph
from holue.datasets.glyphs.morph import morph
from holue.datasets.glyphs.rendering import SIZE, Pixels, render
from holue.datasets.glyphs.world import GlyphPart
from holue.errors import InvalidInputError


@dataclass(frozen=True)
class Damage:
    """What the sliders do to an image; ``seed`` places the noise and the cover."""

    size: int = SIZE
    blur: float = 0.0
    noise: float = 0.0
    cover: float = 0.0
    seed: int = 0

    def apply(self, image: Pixels) -> Pixels:
        """A damaged copy of an image (32, 32) of bytes."""
        degradation = ImageDegradation(self.size, blur=self.blur, noise=self.noise, occlusion=self.cover)
        return degradation.apply(image, np.random.default_rng(self.seed))


@dataclass(frozen=True, eq=False)
class Playground:
    """The glyphs of a world that a visitor can choose: the enrolled ones and strangers.

    >>> from holue.datasets.glyphs.world import glyph_world
    >>> playground = Playground(glyph_world(subjects=30).evaluation)
    >>> first = playground.enrolled[0].label
    >>> playground.chosen(first).shape, playground.morphed(first, playground.enrolled[1].label, 0.5).shape
    ((32, 32), (32, 32))
    """

    part: GlyphPart

    @property
    def enrolled(self) -> tuple[Glyph, ...]:
        """The glyphs that are in the gallery."""
        return self.part.known

    @property
    def strangers(self) -> tuple[Glyph, ...]:
        """The glyphs that are not."""
        return self.part.unknown

    @cached_property
    def _glyphs(self) -> dict[str, Glyph]:
        return {glyph.label: glyph for glyph in (*self.enrolled, *self.strangers)}

    def glyph(self, label: str) -> Glyph:
        """The glyph with a label."""
        found = self._glyphs.get(label)
        if found is None:
            raise InvalidInputError(f"character must be one of the characters listed on the page, got {label!r}")
        return found

    def chosen(self, label: str) -> Pixels:
        """A printed character as its first font draws it, (32, 32) bytes, black on white."""
        glyph = self.glyph(label)
        font = glyph.fonts[0]
        return render(glyph.drawn_by(font), font)

    def morphed(self, first: str, second: str, position: float) -> Pixels:
        """The drawing between two characters: 0 shows the first, 1 the second."""
        one, other = self.glyph(first), self.glyph(second)
        images = morph(one, other, self._shared_font(one, other), np.array([position], dtype=np.float64))
        return np.asarray(images[0])

    @staticmethod
    def drawn(pixels: bytes) -> Pixels:
        """What a visitor drew: 1 024 bytes, row by row, black ink on white paper."""
        if len(pixels) != SIZE * SIZE:
            raise InvalidInputError(f"pixels must be {SIZE * SIZE} bytes (32 × 32), got {len(pixels)}; reload the page")
        return np.frombuffer(pixels, dtype=np.uint8).reshape(SIZE, SIZE)

    @staticmethod
    def _shared_font(one: Glyph, other: Glyph) -> GlyphFont:
        shared = [font for font in one.fonts if font in other.fonts]
        if not shared:
            raise InvalidInputError(f"no font draws both {one.label!r} and {other.label!r}; choose another pair")
        return shared[0]
