"""Uploads: the files that a visitor sends, as probes with names, and photographs to show with their faces."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from starlette.datastructures import UploadFile

from holue.datasets.formats.npz import read_npz
from holue.errors import InvalidFileError, InvalidInputError
from holue.gallery.embeddings import Embeddings
from holue.service.galleries.embedder import Embedder
from holue.service.galleries.opened import Opened
from holue.service.galleries.probes import Probes, probes_of
from holue.service.galleries.sent_files import ReceivedFiles, SentFiles

ARCHIVE = ".npz"


@dataclass(frozen=True, eq=False)
class Uploaded:
    """Probes in the order of the files, and a name for each."""

    probes: Probes
    names: tuple[str, ...]


def read_uploads(files: Sequence[tuple[str, bytes]], embedder: Embedder | None, opened: Opened, most: int) -> Uploaded:
    """One file of embeddings, or any number of images, photographs or recordings where there is a model for them."""
    if not files:
        raise InvalidInputError("no file was sent; choose at least one")
    archives = [name for name, _ in files if name.lower().endswith(ARCHIVE)]
    if archives:
        if len(files) > 1:
            raise InvalidInputError(f"{archives[0]} holds embeddings and comes alone; send one file at a time")
        found = _from_archive(*files[0], opened.live.dim)
    else:
        sent = embedded_files(files, embedder, opened, every_face=True)
        probes = probes_of(sent)
        found = Uploaded(probes, tuple(_name(sent, rows[0]) for rows in probes.of_file))
    if not 1 <= len(found.names) <= most:
        raise InvalidInputError(f"{len(found.names)} probes were sent, at most {most} are answered at once; send fewer")
    return found


def embedded_files(
    files: Sequence[tuple[str, bytes]],
    embedder: Embedder | None,
    opened: Opened,
    *,
    every_face: bool,
    face: str = "",
) -> SentFiles:
    """The embeddings of files by the service's model; ``face`` says which face of each photograph is meant."""
    if not files:
        raise InvalidInputError("no file was sent; choose at least one")
    if embedder is None:
        raise InvalidInputError(
            f"{files[0][0]} is not a file of embeddings, and the service has no model for images or recordings; send an .npz "
            "file as holue embed writes it, or name a model in the settings"
        )
    if opened.live.model is not None and embedder.model != opened.live.model:
        raise InvalidInputError(
            "the service's model is not the one that the gallery was created for; send an .npz file of embeddings"
        )
    received = ReceivedFiles(
        _distinct([name for name, _ in files]), tuple(content for _, content in files), (face,) if face else ()
    )
    found = received.embedded(embedder, every_face=every_face)
    if found.embedded.rows.shape[1] != opened.live.dim:
        raise InvalidInputError(
            f"the service's model gives {found.embedded.rows.shape[1]} numbers, the gallery's embeddings have {opened.live.dim}; "
            "send an .npz file of embeddings"
        )
    return found


async def received(uploads: Sequence[UploadFile]) -> list[tuple[str, bytes]]:
    """Names and contents of the files of a form; their sizes are limited with the body's."""
    return [(upload.filename or "file", await upload.read()) for upload in uploads if upload.size]


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Files of one name are not samples of one probe here: they come from different folders."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(found)


def _name(sent: SentFiles, row: int) -> str:
    face, several = sent.face(row), sent.embedded.file.count(sent.embedded.file[row]) > 1
    return f"{sent.name(row)}, face {face['number']}" if face is not None and several else sent.name(row)


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
    return Uploaded(Probes(rows, None if kappa is None else np.asarray(kappa, np.float64)), shown)
