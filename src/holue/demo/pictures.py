"""Pictures: grey images inside a page, those of small marks larger."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

import numpy as np

from holue.datasets.glyphs.rendering import SIZE, Pixels

INK = 200
"""Darker than this is ink."""
SMALL = 8
"""A mark is small where its ink reaches no further than this, in pixels: accents, commas, dots; no letters."""
CLOSE = SIZE // 2


@dataclass(frozen=True)
class Picture:
    """An image as an address that needs no file beside the page, and how many times larger than the others it is."""

    address: str
    zoom: int


def whole(pixels: Pixels) -> Picture:
    """The image as it is."""
    return Picture(_data_uri(pixels), 1)


def close_up(pixels: Pixels, clean: Pixels) -> Picture:
    """The part of the image around the ink of ``clean``, twice as large, where that is a small mark; else the whole image.

    A comma fills a hundredth of an image that has room for every character: nobody could tell it from an accent.
    """
    box = ink_box(clean)
    if box is None or max(box[2] - box[0], box[3] - box[1]) > SMALL:
        return whole(pixels)
    corner = ((start + end - CLOSE) // 2 for start, end in ((box[0], box[2]), (box[1], box[3])))
    top, left = (min(max(edge, 0), SIZE - CLOSE) for edge in corner)
    return Picture(_data_uri(pixels[top : top + CLOSE, left : left + CLOSE]), 2)


def ink_box(pixels: Pixels) -> tuple[int, int, int, int] | None:
    """Top, left, bottom and right of the ink, the latter two beyond it; None where there is none.

    >>> page = np.full((32, 32), 255, dtype=np.uint8)
    >>> page[20:24, 9:12] = 0
    >>> ink_box(page)
    (20, 9, 24, 12)
    """
    rows, columns = np.nonzero(pixels < INK)
    if not len(rows):
        return None
    return int(rows.min()), int(columns.min()), int(rows.max()) + 1, int(columns.max()) + 1


def _data_uri(pixels: Pixels) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
