"""GlyphFont: a font file that comes with matplotlib, and the characters it draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

from holue.errors import InvalidParameterError, MissingDependencyError

EXTRA = "report"
"""The extra that brings matplotlib and Pillow."""

_FACES = {
    "DejaVuSans": ("DejaVu Sans", ("", "-Bold", "-Oblique", "-BoldOblique")),
    "DejaVuSansMono": ("DejaVu Sans Mono", ("", "-Bold", "-Oblique", "-BoldOblique")),
    "DejaVuSerif": ("DejaVu Serif", ("", "-Bold", "-Italic", "-BoldItalic")),
    "STIXGeneral": ("STIX", ("", "Bol", "Italic", "BolIta")),
    "cm": ("Computer Modern", ("r10", "b10", "ss10", "ti10", "tt10")),
}
"""File names by family. Left out of matplotlib's folder: LastResort, which claims every code point and draws boxes; the display
sizes; STIX's size variants and its fonts that are not Unicode; Computer Modern's symbols, whose places are not Unicode's."""

_NOT_UNICODE = {"Computer Modern": frozenset(ascii_letters + digits)}
"""Families that follow Unicode only for these characters."""


@dataclass(frozen=True)
class GlyphFont:
    """One face of a family: ``DejaVu Sans``, ``DejaVuSans-Bold``.

    Equal by name; its ``characters`` are those it has a drawing for, by Unicode.
    """

    name: str
    family: str = field(compare=False)
    path: Path = field(compare=False, repr=False)
    characters: frozenset[str] = field(compare=False, repr=False)

    def draws(self, text: str) -> bool:
        """Whether every character of ``text`` is in this font."""
        return all(character in self.characters for character in text)

    def at(self, pixels: int) -> Any:
        """Pillow's font whose em is so many pixels."""
        return _opened(self.path, pixels)


@cache
def glyph_fonts() -> tuple[GlyphFont, ...]:
    """The fonts of the glyph world: DejaVu Sans, Mono and Serif, STIX and Computer Modern, in their styles and weights.

    >>> [font.name for font in glyph_fonts()][:3]
    ['DejaVuSans', 'DejaVuSans-Bold', 'DejaVuSans-Oblique']
    >>> glyph_fonts()[0].draws("Ж"), glyph_fonts()[-1].draws("Ж")
    (True, False)
    """
    try:
        from matplotlib import get_data_path
        from matplotlib.ft2font import FT2Font
    except ImportError as error:
        raise MissingDependencyError("matplotlib", EXTRA) from error
    folder = Path(get_data_path()) / "fonts" / "ttf"
    fonts = []
    for stem, (family, endings) in _FACES.items():
        for ending in endings:
            path = folder / f"{stem}{ending}.ttf"
            if not path.is_file():
                raise MissingDependencyError(f"the font {path.name} of matplotlib", EXTRA)
            mapped = frozenset(map(chr, FT2Font(str(path)).get_charmap()))
            fonts.append(GlyphFont(path.stem, family, path, mapped & _NOT_UNICODE.get(family, mapped)))
    return tuple(fonts)


def find_font(name: str) -> GlyphFont:
    """The font of this name, such as ``DejaVuSerif-Italic``."""
    for font in glyph_fonts():
        if font.name == name:
            return font
    raise InvalidParameterError(
        f"font must be one of {', '.join(font.name for font in glyph_fonts())}, got {name!r}; glyph_fonts() lists them"
    )


@cache
def _opened(path: Path, pixels: int) -> Any:
    try:
        from PIL import ImageFont
    except ImportError as error:
        raise MissingDependencyError("pillow", EXTRA) from error
    # The plain layout: one drawing per code point, whether or not a shaping library is there.
    return ImageFont.truetype(path, pixels, layout_engine=ImageFont.Layout.BASIC)
