"""Image file: the pixels of an encoded image, turned upright; its size is checked before it is decoded."""

from __future__ import annotations

import io
from types import ModuleType

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidFileError, MissingDependencyError

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".pgm", ".ppm")
FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "TIFF", "PPM")
"""What Pillow may decode. It knows more formats, of which some start other programs."""


def decode_image(content: bytes, origin: str, mode: str = "RGB") -> npt.NDArray[np.uint8]:
    """The pixels of an image file, RGB (H, W, 3) or, with mode ``L``, grey (H, W); EXIF's rotation is applied.

    An image of more than ``PIL.Image.MAX_IMAGE_PIXELS`` pixels is refused before it is decoded: a small file may claim any size.
    """
    Image = pillow()
    from PIL import ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            most, (width, height) = Image.MAX_IMAGE_PIXELS, image.size
            if most is not None and width * height > most:
                raise ValueError(f"{width}×{height} pixels, at most {most / 1e6:.0f} million are decoded")
            if image.mode.startswith(("I", "F")):
                raise ValueError(f"its pixels are of more than 8 bits, mode {image.mode}: save it with 8")
            return np.asarray(ImageOps.exif_transpose(image).convert(mode))
    except UnidentifiedImageError:
        known = f"{', '.join(FORMATS[:-1])} nor {FORMATS[-1]}"
        raise InvalidFileError(
            f"{origin}: not a readable image (neither {known}, or damaged); replace or remove it"
        ) from None
    # Pillow's decoders raise whatever their format raises: OSError, SyntaxError, struct.error, ...
    except Exception as error:
        raise InvalidFileError(f"{origin}: not a readable image ({error}); replace or remove it") from error


def pillow() -> ModuleType:
    """Pillow's ``Image``, or an error with the install line."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError("pillow", "embed") from error
    return Image
