"""Pictures: small pictures of what was sent, for galleries that keep them and for the page."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt

from holue.embedding.inputs.image_file import decode_image, pillow
from holue.service.ledger.images import Image

THUMBNAIL = 256
"""Pixels of the longer side of a picture that is kept."""


def thumbnail(content: bytes, longest: int = THUMBNAIL) -> Image:
    """A small picture of an image file, turned as its EXIF data say."""
    return _png(decode_image(content, "the image"), longest)


def crop_picture(crop: npt.NDArray[np.uint8]) -> Image:
    """The picture of an aligned face."""
    return _png(crop, THUMBNAIL)


def shown_photograph(content: bytes, longest: int) -> tuple[Image, tuple[int, int]]:
    """A photograph as JPEG, upright and at most so large, and the size (width, height) of the original."""
    pixels = decode_image(content, "the photograph")
    picture = pillow().fromarray(pixels)
    picture.thumbnail((longest, longest))
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=85)
    return Image("image/jpeg", stream.getvalue()), (pixels.shape[1], pixels.shape[0])


def _png(pixels: npt.NDArray[np.uint8], longest: int) -> Image:
    picture = pillow().fromarray(pixels)
    picture.thumbnail((longest, longest))
    stream = io.BytesIO()
    picture.save(stream, "PNG")
    return Image("image/png", stream.getvalue())
