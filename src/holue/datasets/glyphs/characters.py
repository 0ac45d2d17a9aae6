"""Characters: what the fonts can draw often enough to be an identity of the glyph world."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache

from holue.datasets.glyphs.fonts import glyph_fonts
from holue.datasets.glyphs.rendering import fits

FEWEST_FONTS = 8
"""A character that fewer fonts draw comes from one family only, and its samples would be near copies."""
LETTER_PAIRS = ("cl", "nn", "ri", "rn", "vv")
"""Two letters that are read as one (d, m, n, m, w); they count as characters here."""

_CODES = ((0x2500, 0x259F), (0x2800, 0x28FF))
"""Box drawing, block elements and Braille: hundreds of codes of lines and dots that nobody knows by their shape."""


@cache
def glyph_characters() -> tuple[str, ...]:
    """Every character that at least eight fonts draw, whole inside the image, in the order of Unicode; then the letter pairs.

    Spaces, control characters and marks that combine with a letter are left out, and so are box drawing and Braille.

    >>> characters = glyph_characters()
    >>> len(characters) > 2000, "Ж" in characters, "⇒" in characters
    (True, True, True)
    """
    fonts = glyph_fonts()
    count = Counter(character for font in fonts for character in font.characters)
    often = (character for character, times in count.items() if times >= FEWEST_FONTS and _is_shape(character))
    texts = [*sorted(often), *LETTER_PAIRS]
    return tuple(text for text in texts if all(fits(text, font) for font in fonts if font.draws(text)))


def character_name(text: str) -> str:
    """The name of a character in Unicode, in lower case.

    >>> character_name("Ж"), character_name("rn")
    ('cyrillic capital letter zhe', 'latin small letter r, latin small letter n')
    """
    return ", ".join(unicodedata.name(character, f"U+{ord(character):04X}").lower() for character in text)


def _is_shape(character: str) -> bool:
    code = any(first <= ord(character) <= last for first, last in _CODES)
    return not code and unicodedata.category(character)[0] not in "CMZ"
