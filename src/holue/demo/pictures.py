"""Pictures: a grey image as a PNG inside a page."""

from __future__ import annotations

import base64
import io

from holue.datasets.glyphs.rendering import Pixels


def data_uri(pixels: Pixels) -> str:
    """Bytes (H, W) as the address of an image that needs no file beside the page."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
