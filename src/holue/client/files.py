"""Files: photographs, images and recordings as the body of a request, and embeddings out of ``.npy`` files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holue.artifact.plain_array import NotPlainError, read_array
from holue.errors import InvalidFileError, InvalidParameterError, MissingDependencyError

File = str | os.PathLike[str] | bytes
"""The path of a file, or its content."""
Files = File | Sequence[File] | Mapping[str, File | Sequence[File]]
"""Files as probes. In a mapping the files of one name are samples of one probe; in a sequence each file is a probe."""
FACE = "face"


def packed_files(files: Files, face: str | int | Sequence[str | int] | None) -> tuple[bytes, dict[str, str]]:
    """The body and the headers that carry files; packed once, so that a request that is sent again has the same bytes."""
    try:
        import httpx
    except ImportError as error:
        raise MissingDependencyError("httpx", "client") from error
    parts = [(name, (_base(one), _content(one))) for name, one in named(files)]
    chosen = [] if face is None else [face] if isinstance(face, str | int) else list(face)
    request = httpx.Request("POST", "http://body", files=parts, data={FACE: [str(each) for each in chosen]})
    return request.read(), {"Content-Type": request.headers["content-type"]}


def named(files: Files) -> list[tuple[str, File]]:
    """Each file with the name of its probe.

    >>> named({"door": ["1.jpg", "2.jpg"], "gate": b"..."})
    [('door', '1.jpg'), ('door', '2.jpg'), ('gate', b'...')]
    >>> named(["a/1.jpg", "b/1.jpg"])
    [('a/1.jpg', 'a/1.jpg'), ('b/1.jpg', 'b/1.jpg')]
    """
    if isinstance(files, Mapping):
        found = [(str(name), one) for name, some in files.items() for one in _several(some)]
    else:
        found = [
            (f"file {place}" if isinstance(one, bytes) else os.fspath(one), one)
            for place, one in enumerate(_several(files), start=1)
        ]
    if not found:
        raise InvalidParameterError("files must hold at least one file, got none; name a photograph or a recording")
    wrong = [one for name, one in found if name == FACE and not isinstance(files, str)]
    if wrong:
        raise InvalidParameterError(
            f"a probe cannot be called {FACE!r}: the service reads this field as a choice of faces"
        )
    return found


def read_npy(path: str | os.PathLike[str]) -> Any:
    """The array in an ``.npy`` file, without pickles."""
    content = _content(path)
    try:
        return read_array(io.BytesIO(content), len(content))
    except NotPlainError as error:
        raise InvalidFileError(
            f"{os.fspath(path)}: not a plain .npy array ({error}); embeddings are sent from .npy files, photographs and "
            "recordings by identify_files and enroll_files"
        ) from error


def _several(some: File | Iterable[File]) -> list[File]:
    return [some] if isinstance(some, str | bytes | os.PathLike) else list(some)


def _base(one: File) -> str:
    return "file" if isinstance(one, bytes) else Path(one).name


def _content(one: File) -> bytes:
    if isinstance(one, bytes):
        return one
    try:
        return Path(one).read_bytes()
    except OSError as error:
        raise InvalidFileError(
            f"{os.fspath(one)}: cannot be read ({error.strerror}); give the path of a file"
        ) from error
