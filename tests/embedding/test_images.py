from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pytest

from holue.embedding.inputs.images import ImageInput
from holue.errors import InvalidFileError, InvalidInputError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)


def test_an_image_is_scaled_channel_by_channel(png: Callable[[np.ndarray], bytes]) -> None:
    given = ImageInput(6, 5, mean=(1.0, 2.0, 3.0), scale=(2.0, 4.0, 8.0))
    expected = np.stack([(PIXELS[:, :, c].astype(float) - (c + 1)) / 2 ** (c + 1) for c in range(3)])
    np.testing.assert_array_equal(given.prepare(given.decode(png(PIXELS), "a.png"), "a.png"), expected)


def test_bgr_turns_the_channels_round() -> None:
    rgb = ImageInput(6, 5).prepare(PIXELS, "a")
    np.testing.assert_array_equal(ImageInput(6, 5, "bgr").prepare(PIXELS, "a"), rgb[::-1])


def test_grey_images_serve_colour_models_and_the_other_way_round() -> None:
    grey = PIXELS[:, :, 0]
    as_colour = ImageInput(6, 5).prepare(grey, "a")
    assert as_colour.shape == (3, 6, 5)
    np.testing.assert_array_equal(as_colour[0], as_colour[2])
    assert ImageInput(6, 5, "grey").prepare(PIXELS, "a").shape == (1, 6, 5)


def test_an_image_of_another_size_is_refused_unless_resizing_is_allowed() -> None:
    with pytest.raises(InvalidInputError, match=r"a.png: the image is 6×5, the model takes 8×8.*resize = true"):
        ImageInput(8, 8).prepare(PIXELS, "a.png")
    for colour, channels in (("rgb", 3), ("grey", 1)):
        assert ImageInput(8, 8, colour, resize=True).prepare(PIXELS, "a.png").shape == (channels, 8, 8)


def test_a_rotated_photograph_is_turned_upright() -> None:
    from PIL import Image

    image, stream = Image.fromarray(PIXELS), io.BytesIO()
    exif = image.getexif()
    exif[0x0112] = 6  # the camera was held on its side
    image.save(stream, "PNG", exif=exif)
    np.testing.assert_array_equal(ImageInput(5, 6).decode(stream.getvalue(), "a"), np.rot90(PIXELS, -1, axes=(0, 1)))


def test_pixels_of_16_bits_are_refused_since_pillow_would_saturate_them(png: Callable[[np.ndarray], bytes]) -> None:
    deep = png(np.full((6, 5), 40_000, np.uint16))
    with pytest.raises(InvalidFileError, match=r"a.png: .*more than 8 bits"):
        ImageInput(6, 5).decode(deep, "a.png")


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n" + b"\0" * 30])
def test_an_unreadable_image_names_its_file(content: bytes) -> None:
    with pytest.raises(InvalidFileError, match=r"faces.zip: ann/1.png: not a readable image"):
        ImageInput(6, 5).decode(content, "faces.zip: ann/1.png")


@pytest.mark.parametrize("wrong", [PIXELS / 255.0, PIXELS[0, 0], np.zeros((6, 5, 4), np.uint8)])
def test_an_array_that_is_no_image_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="must be bytes"):
        ImageInput(6, 5).prepare(wrong, "sample 3")
