"""Rendering: a character drawn by a font as a small grey image, each time a little differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.datasets.glyphs.fonts import EXTRA, GlyphFont, find_font
from holue.errors import InvalidParameterError, MissingDependencyError

Pixels = npt.NDArray[np.uint8]

SIZE = 32
"""Pixels of an image, each way."""
EM = 20
BASELINE = 23
"""Where a line of text stands, in pixels from the top. Every character keeps the size and height that its font gives it: o and
O differ by size, comma and apostrophe by height."""
MARGIN = 1
OVERSAMPLING = 3
"""Drawn so much larger before it is moved, so that moving it blurs nothing."""
CELLS = 3
"""The strokes waver on a grid of so many cells each way."""

_EDGE = SIZE * OVERSAMPLING
_NODES = np.stack(np.meshgrid(*[np.linspace(-_EDGE / 2, _EDGE / 2, CELLS + 1)] * 2), axis=2)
"""The corners of the cells (row, column, x and y) from the centre."""
_BOXES = [
    tuple(_EDGE // CELLS * edge for edge in (column, row, column + 1, row + 1))
    for row in range(CELLS)
    for column in range(CELLS)
]

ROTATION, SHIFT, SCALE, WOBBLE = 8.0, 1.5, 0.1, 0.4


@dataclass(frozen=True)
class Variation:
    """How a sample differs from the printed form.

    ``rotation`` in degrees, ``right`` and ``down`` in pixels, ``scale`` a factor, ``wobble`` the deviation in pixels by which the
    strokes waver.
    """

    rotation: float = 0.0
    right: float = 0.0
    down: float = 0.0
    scale: float = 1.0
    wobble: float = 0.0

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise InvalidParameterError(f"scale is a positive factor, got {self.scale}")
        if self.wobble < 0:
            raise InvalidParameterError(f"wobble is a deviation in pixels, 0 or more, got {self.wobble}")


def draw_variation(rng: np.random.Generator) -> Variation:
    """Up to 8° turned, 1.5 pixels shifted, a tenth larger or smaller, with strokes that waver.

    >>> round(draw_variation(np.random.default_rng(0)).rotation, 3)
    2.191
    """
    return Variation(
        rotation=float(rng.uniform(-ROTATION, ROTATION)),
        right=float(rng.uniform(-SHIFT, SHIFT)),
        down=float(rng.uniform(-SHIFT, SHIFT)),
        scale=float(rng.uniform(1 - SCALE, 1 + SCALE)),
        wobble=float(rng.uniform(0, WOBBLE)),
    )


def render(
    text: str,
    font: GlyphFont | str = "DejaVuSans",
    variation: Variation | None = None,
    rng: np.random.Generator | None = None,
) -> Pixels:
    """Black on white, 32 × 32 bytes: centred by its advance, on the baseline, as large as the font has it.

    ``rng`` makes the strokes waver; without it they do not.

    >>> image = render("A")
    >>> image.shape, int(image[0, 0]), bool(image.min() < 30)
    ((32, 32), 255, True)
    """
    face = find_font(font) if isinstance(font, str) else font
    if not text or not face.draws(text):
        raise InvalidParameterError(
            f"{face.name} has no drawing for {text!r}; choose a character and a font that has it"
        )
    ink = draw_ink(text, face)
    if variation is not None and variation != Variation():
        Image, _ = _pillow()
        mesh = _mesh(variation, rng)
        ink = ink.transform(ink.size, Image.Transform.MESH, mesh, Image.Resampling.BILINEAR, fillcolor=0)
    white = np.uint8(255)
    image: Pixels = white - np.asarray(ink.reduce(OVERSAMPLING))
    return image


def draw_ink(text: str, font: GlyphFont) -> Any:
    """The drawing as Pillow's image, white on black, three times as large as the sample will be."""
    Image, ImageDraw = _pillow()
    ink = Image.new("L", (_EDGE, _EDGE))
    middle = (_EDGE / 2, BASELINE * OVERSAMPLING)
    ImageDraw.Draw(ink).text(middle, text, fill=255, font=font.at(EM * OVERSAMPLING), anchor="ms")
    return ink


def fits(text: str, font: GlyphFont) -> bool:
    """Whether the whole drawing lies inside the image, a pixel from its edge, and there is any ink."""
    box = np.array(font.at(EM * OVERSAMPLING).getbbox(text, anchor="ms")) / OVERSAMPLING
    left, top, right, bottom = map(float, box + np.array([SIZE / 2, BASELINE] * 2))
    inside = min(left, top) >= MARGIN and max(right, bottom) <= SIZE - MARGIN
    return inside and right > left and bottom > top


def _mesh(variation: Variation, rng: np.random.Generator | None) -> list[tuple[tuple[int, ...], list[float]]]:
    """Every cell of the image with the four corners it is taken from."""
    # From where a point has come: the inverse of scaling and turning about the centre, then shifting.
    moved = _NODES - OVERSAMPLING * np.array([variation.right, variation.down])
    angle = np.deg2rad(variation.rotation)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    nodes = moved @ turn / variation.scale + _EDGE / 2
    if rng is not None and variation.wobble:
        nodes += rng.normal(0, variation.wobble * OVERSAMPLING, nodes.shape)
    # Pillow's order: upper left, lower left, lower right, upper right.
    corners = np.concatenate([nodes[:-1, :-1], nodes[1:, :-1], nodes[1:, 1:], nodes[:-1, 1:]], axis=2)
    return list(zip(_BOXES, corners.reshape(CELLS**2, 8).tolist()))


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise MissingDependencyError("pillow", EXTRA) from error
    return Image, ImageDraw
