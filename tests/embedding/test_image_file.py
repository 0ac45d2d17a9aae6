from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest

from holue.embedding.inputs.image_file import FORMATS, decode_image
from holue.errors import InvalidFileError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 3), dtype=np.uint8)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("edge", [10_000, 60_000])
def test_an_image_that_claims_a_huge_size_is_refused_before_it_is_decoded(edge: int) -> None:
    header = struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)
    # no pixel is there: a decoder that began would complain about that instead
    bomb = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    with pytest.raises(InvalidFileError, match=r"party.png: not a readable image \(.*pixels"):
        decode_image(bomb, "party.png")


@pytest.mark.parametrize("turn", range(1, 9))
def test_every_rotation_of_exif_is_undone(turn: int) -> None:
    from PIL import Image

    # how a camera stores an upright picture, by the value of EXIF's orientation
    stored = {
        1: PIXELS,
        2: PIXELS[:, ::-1],
        3: PIXELS[::-1, ::-1],
        4: PIXELS[::-1],
        5: PIXELS.transpose(1, 0, 2),
        6: np.rot90(PIXELS, 1, axes=(0, 1)),
        7: PIXELS[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(PIXELS, -1, axes=(0, 1)),
    }[turn]
    image, stream = Image.fromarray(np.ascontiguousarray(stored)), io.BytesIO()
    exif = image.getexif()
    exif[0x0112] = turn
    image.save(stream, "PNG", exif=exif)
    np.testing.assert_array_equal(decode_image(stream.getvalue(), "a.png"), PIXELS)


def test_formats_that_start_other_programs_are_not_opened() -> None:
    assert "EPS" not in FORMATS
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n%%EOF\n"
    with pytest.raises(InvalidFileError, match=r"a.jpg: not a readable image"):
        decode_image(postscript, "a.jpg")
