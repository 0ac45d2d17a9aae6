"""Uploads: the files that a visitor sends, as probes with names and, where they are images, small pictures."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from starlette.datastructures import UploadFile

from holue.datasets.formats.npz import read_npz
from holue.errors import InvalidFileError, InvalidInputError
from holue.gallery.embeddings import Embeddings
from holue.service.galleries.embedder import Embedder
from holue.service.galleries.probes import Probes
from holue.service.ledger.images import Image

ARCHIVE = ".npz"
THUMBNAIL = 256
"""Pixels of the longer side of a picture that is kept."""


@dataclass(frozen=True, eq=False)
class Uploaded:
    """Probes in the order of the files, a name for each, and a picture where there is one."""

    probes: Probes
    names: tuple[str, ...]
    pictures: tuple[Image | None, ...]


def read_uploads(files: Sequence[tuple[str, bytes]], embedder: Embedder | None, dim: int, most: int) -> Uploaded:
    """One file of embeddings, or any number of images or recordings where there is a model for them."""
    if not files:
        raise InvalidInputError("no file was sent; choose at least one")
    archives = [name for name, _ in files if name.lower().endswith(ARCHIVE)]
    if archives:
        if len(files) > 1:
            raise InvalidInputError(f"{archives[0]} holds embeddings and comes alone; send one file at a time")
        found = _from_archive(*files[0], dim)
    elif embedder is None:
        raise InvalidInputError(
            f"{files[0][0]} is not a file of embeddings, and the service has no model for images or recordings; send an .npz "
            "file as holue embed writes it, or name a model in the settings"
        )
    else:
        directions, kappa = embedder.embed([content for _, content in files])
        images = embedder.kind == "image"
        pictures = tuple(thumbnail(content) if images else None for _, content in files)
        found = Uploaded(Probes(directions, kappa), tuple(name for name, _ in files), pictures)
    if not 1 <= len(found.names) <= most:
        raise InvalidInputError(f"{len(found.names)} probes were sent, at most {most} are answered at once; send fewer")
    return found


async def received(uploads: Sequence[UploadFile]) -> list[tuple[str, bytes]]:
    """Names and contents of the files of a form; their sizes are limited with the body's."""
    return [(upload.filename or "file", await upload.read()) for upload in uploads if upload.size]


def thumbnail(content: bytes) -> Image:
    """A small picture of an image, turned as its EXIF data say."""
    from PIL import Image as Pillow
    from PIL import ImageOps

    with Pillow.open(io.BytesIO(content)) as opened:
        upright = ImageOps.exif_transpose(opened)
        upright.thumbnail((THUMBNAIL, THUMBNAIL))
        stream = io.BytesIO()
        upright.convert("RGB").save(stream, "PNG")
    return Image("image/png", stream.getvalue())


def _from_archive(name: str, content: bytes, dim: int) -> Uploaded:
    with tempfile.TemporaryDirectory(prefix="holue-upload-") as folder:
        path = Path(folder) / "probes.npz"
        path.write_bytes(content)
        try:
            columns = read_npz(path, required=("embeddings",), optional=("concentration", "sample_id"))
        except InvalidInputError as error:
            raise InvalidFileError(str(error).replace(str(path), name)) from None
    rows = np.asarray(columns["embeddings"])
    if rows.ndim != 2 or rows.shape[1] != dim:
        raise InvalidFileError(
            f"{name}: embeddings has shape {rows.shape}, the gallery's rows have {dim} numbers; embed again"
        )
    kappa = columns.get("concentration")
    Embeddings.from_samples(rows, kappa)
    names = columns.get("sample_id")
    shown = tuple(str(each) for each in (range(len(rows)) if names is None else names.tolist()))
    return Uploaded(Probes(rows, None if kappa is None else np.asarray(kappa, np.float64)), shown, (None,) * len(rows))
