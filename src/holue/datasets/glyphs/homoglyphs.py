"""Homoglyphs: characters that no font distinguishes, such as Latin A, Greek Alpha and Cyrillic A.

They are found by comparing drawings, not from a list. With ``a`` and ``b`` the ink of two characters in one font, large, on the
baseline and moved over each other sideways, their difference is

    D(a, b) = Σ (a − b)² / min(Σ a², Σ b²)

Two characters are homoglyphs where it is at most ``SAME`` in half of the fonts that draw both (the font's maker copied the
outline) and at most ``ALIKE`` in all of them (a hair's breadth, not a feature). Groups are closed: where Y is the Cyrillic Ү
and Ү is Upsilon, all three are one. Whatever some font does distinguish (O and 0, η and ƞ) is a look-alike and stays a subject
of its own.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from holue.datasets.glyphs.characters import glyph_characters
from holue.datasets.glyphs.fonts import GlyphFont, glyph_fonts
from holue.datasets.glyphs.rendering import draw_ink, render

SAME, ALIKE = 0.015, 0.12
"""Breve and caron on a capital O differ by 0.026 in the median, the nearest pair that people tell apart; c and small capital c by
0.011. Homoglyphs of STIX, whose Greek letters are drawn anew, differ by up to 0.1."""
CANDIDATE = 0.03
"""The difference of small images in the first font below which a pair is looked at closely."""
SIDEWAYS = (0, -1, 1, -2, 2)

Ink = npt.NDArray[np.float32]


@cache
def homoglyphs() -> tuple[tuple[str, ...], ...]:
    """The groups of two or more characters that no font distinguishes, each in the order of Unicode.

    >>> next(group for group in homoglyphs() if "A" in group)
    ('A', 'Α', 'А')
    """
    group = {text: {text} for text in glyph_characters()}
    for first, second in _candidates():
        if group[first] is not group[second] and _no_font_distinguishes(first, second):
            joined = group[first] | group[second]
            group |= dict.fromkeys(joined, joined)
    order = {text: place for place, text in enumerate(glyph_characters())}
    found = {min(some, key=order.__getitem__): some for some in group.values() if len(some) > 1}
    return tuple(tuple(sorted(found[first], key=order.__getitem__)) for first in sorted(found, key=order.__getitem__))


def _candidates() -> list[tuple[str, str]]:
    """Pairs whose images are nearly equal in the first font, which draws every character; most alike first."""
    pairs: dict[tuple[str, str], float] = {}
    font = glyph_fonts()[0]
    texts = glyph_characters()
    ink = 1 - np.stack([render(text, font) for text in texts]).reshape(len(texts), -1).astype(np.float32) / 255
    power = np.square(ink).sum(axis=1)
    difference = power[:, None] + power - 2 * ink @ ink.T
    near = np.triu(difference <= CANDIDATE * np.minimum(power[:, None], power), 1)
    for one, other in np.argwhere(near):
        pairs[texts[one], texts[other]] = float(difference[one, other])
    return sorted(pairs, key=pairs.__getitem__)


def _no_font_distinguishes(first: str, second: str) -> bool:
    differences = []
    for font in glyph_fonts():
        if font.draws(first) and font.draws(second):
            differences.append(_difference(_centred(first, font), _centred(second, font)))
            if differences[-1] > ALIKE:
                return False
    return bool(differences) and float(np.median(differences)) <= SAME


def _difference(first: Ink, second: Ink) -> float:
    power = float(min(np.vdot(first, first), np.vdot(second, second)))
    least = np.inf
    for step in SIDEWAYS:
        apart = first - np.roll(second, step, axis=1)
        least = min(least, float(np.vdot(apart, apart)) / power)
        if least <= SAME:
            break
    return least


@cache
def _centred(text: str, font: GlyphFont) -> Ink:
    """The ink, large, with its left and right edge as far from the middle: bearings are not part of a shape."""
    ink = np.asarray(draw_ink(text, font), dtype=np.float32) / 255
    columns = np.flatnonzero(ink.max(axis=0) > 0.5)
    return np.roll(ink, ink.shape[1] // 2 - int(columns[0] + columns[-1]) // 2, axis=1)
