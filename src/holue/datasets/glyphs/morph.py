"""Morph: the drawing of one character turning into another's.

The shapes are blended, not the pixels, since two faint pictures upon each other would be a poor sample. With ``f`` the signed
distance of a point from the outline, positive in the ink, the shape at ``t`` is where

    (1 − t)·f_first + t·f_second ≥ 0
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.datasets.glyphs.fonts import GlyphFont
from holue.datasets.glyphs.identities import Glyph
from holue.datasets.glyphs.rendering import OVERSAMPLING, SIZE, Pixels, draw_ink
from holue.gallery.embeddings import Float64Array


def morph(first: Glyph, second: Glyph, font: GlyphFont, position: Float64Array) -> Pixels:
    """Images (n, 32, 32) of bytes at every position from 0, the first glyph, to 1, the second.

    >>> from holue.datasets.glyphs.identities import glyphs
    >>> by_label = {glyph.label: glyph for glyph in glyphs()}
    >>> images = morph(by_label["D"], by_label["O"], by_label["D"].fonts[0], np.linspace(0, 1, 5))
    >>> images.shape, bool((images[0] != images[4]).any())
    ((5, 32, 32), True)
    """
    start, end = (_signed_distance(glyph, font) for glyph in (first, second))
    t = position[:, None, None]
    # A point half a fine pixel inside the outline is all ink, one half a pixel outside none.
    ink = np.clip((1 - t) * start + t * end + 0.5, 0, 1)
    small = ink.reshape(len(position), SIZE, OVERSAMPLING, SIZE, OVERSAMPLING).mean(axis=(2, 4))
    images: Pixels = np.round(255 * (1 - small)).astype(np.uint8)
    return images


def ink_kept(images: Pixels) -> float:
    """The least ink on the way, as a share of what the lighter end has: thin strokes that do not overlap vanish halfway.

    >>> ink_kept(np.array([[[0, 0]], [[0, 255]], [[0, 0]]], dtype=np.uint8))
    0.5
    """
    ink = (255.0 - images).sum(axis=(1, 2))
    return float(ink.min() / min(ink[0], ink[-1]))


def _signed_distance(glyph: Glyph, font: GlyphFont) -> Float64Array:
    from scipy.ndimage import distance_transform_edt

    ink: npt.NDArray[np.bool_] = np.asarray(draw_ink(glyph.drawn_by(font), font)) > 127
    inside, outside = distance_transform_edt(ink), distance_transform_edt(~ink)
    return np.asarray(np.where(ink, inside - 0.5, 0.5 - outside), dtype=np.float64)
