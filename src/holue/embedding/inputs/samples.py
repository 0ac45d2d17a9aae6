"""Sample: one image or utterance to embed, wherever its bytes are."""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np

from holue.embedding.inputs.model_input import ModelInput, RawArray
from holue.errors import InvalidFileError, InvalidInputError, InvalidSubjectsError

Content = bytes | RawArray
LIST_SUFFIXES = (".txt", ".lst")


@dataclass(frozen=True)
class Sample:
    """Its id, its subject ("" where unknown), a name for errors, how to get its content, and the file that holds it."""

    sample_id: str
    subject_id: str
    origin: str
    load: Callable[[], Content]
    file: Path | None = None  # None: in memory

    def read(self) -> Content:
        """The content, or an error that names the sample."""
        try:
            return self.load()
        except OSError as error:
            raise InvalidFileError(f"{self.origin}: cannot be read ({error})") from error


def find_samples(inputs: Iterable[str | Path], model_input: ModelInput) -> list[Sample]:
    """The samples in folders, zips, text lists (one path per line) and single files, in a fixed order.

    In a folder or zip, files with other endings are passed over; a file named by itself is always read.
    The subject is the name of the folder that holds the file; a file at the top of a folder or zip has none.
    """
    samples: list[Sample] = []
    for entry in inputs:
        path = Path(entry)
        if path.is_dir():
            samples += _in_folder(path, model_input)
        elif not path.is_file():
            raise InvalidFileError(f"{path}: no such file or folder")
        elif zipfile.is_zipfile(path):
            samples += _in_zip(path, model_input)
        elif path.suffix.lower() in LIST_SUFFIXES:
            samples += _in_list(path)
        else:
            samples.append(_single(path, str(path)))
    if not samples:
        raise InvalidFileError("no input was given; name a folder, a zip, a list or files")
    _require_distinct(samples)
    return samples


def array_samples(
    arrays: Sequence[RawArray],
    *,
    sample_id: Sequence[str] | None = None,
    subject_id: Sequence[str] | None = None,
) -> list[Sample]:
    """Samples that are in memory: images (H, W, 3) of bytes, or mono waveforms of floats.

    >>> [sample.sample_id for sample in array_samples([np.zeros((2, 2, 3), np.uint8)] * 2)]
    ['0', '1']
    """
    ids = [str(i) for i in range(len(arrays))] if sample_id is None else [str(name) for name in sample_id]
    subjects = [""] * len(arrays) if subject_id is None else [str(name) for name in subject_id]
    if len(ids) != len(arrays) or len(subjects) != len(arrays):
        raise InvalidSubjectsError(
            f"sample_id and subject_id must name each of {len(arrays)} arrays: got {len(ids)} and {len(subjects)} names"
        )
    samples = [
        Sample(name, subject, f"sample {name}", partial(np.asarray, array))
        for name, subject, array in zip(ids, subjects, arrays, strict=True)
    ]
    _require_distinct(samples)
    return samples


def digest(content: Content) -> str:
    """What names a content: a hash of its bytes and, for an array, of its shape and type.

    >>> digest(b"a") == digest(b"a"), digest(b"a") == digest(b"b")
    (True, False)
    """
    if isinstance(content, bytes):
        return hashlib.sha256(b"file:" + content).hexdigest()
    header = f"{content.dtype.str}{content.shape}:".encode()
    return hashlib.sha256(header + np.ascontiguousarray(content).tobytes()).hexdigest()


def _in_folder(folder: Path, model_input: ModelInput) -> list[Sample]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = [path.relative_to(folder).as_posix() for path in paths]
    wanted = _readable(names, str(folder), model_input)
    return [
        Sample(name, _parent(name), str(path), path.read_bytes, path)
        for name, path in zip(names, paths, strict=True)
        if name in wanted
    ]


def _in_zip(path: Path, model_input: ModelInput) -> list[Sample]:
    archive = zipfile.ZipFile(path)
    names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
    wanted = _readable(names, str(path), model_input)
    return [
        Sample(name, _parent(name), f"{path}: {name}", partial(_read_member, archive, name), path)
        for name in names
        if name in wanted
    ]


def _in_list(path: Path) -> list[Sample]:
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError as error:
        raise InvalidFileError(f"{path}: a list of files must be UTF-8 text ({error})") from error
    samples = []
    for number, line in enumerate(lines, start=1):
        if not line or line.startswith("#"):
            continue
        file = path.parent / line
        if not file.is_file():
            raise InvalidFileError(f"{path}, line {number}: no such file: {line} (paths are relative to the list)")
        samples.append(_single(file, line))
    if not samples:
        raise InvalidFileError(f"{path}: the list names no file")
    return samples


def _single(path: Path, name: str) -> Sample:
    return Sample(name, path.parent.name, str(path), path.read_bytes, path)


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, EOFError) as error:
        raise InvalidFileError(f"{archive.filename}: {name}: the member cannot be read ({error})") from error


def _readable(names: Sequence[str], origin: str, model_input: ModelInput) -> set[str]:
    hidden = (".", "__MACOSX")
    visible = [name for name in names if not any(part.startswith(hidden) for part in name.split("/"))]
    wanted = {name for name in visible if PurePosixPath(name).suffix.lower() in model_input.suffixes}
    if not wanted:
        endings = Counter(PurePosixPath(name).suffix.lower() or "no ending" for name in visible)
        found = ", ".join(f"{count} × {ending}" for ending, count in endings.most_common(4)) or "nothing"
        raise InvalidFileError(
            f"{origin}: no file for this {model_input.kind} model ({' '.join(model_input.suffixes)}); "
            f"it holds {found}; name another input, or a model for this kind"
        )
    return wanted


def _parent(name: str) -> str:
    return PurePosixPath(name).parent.name


def _require_distinct(samples: Sequence[Sample]) -> None:
    first: dict[str, str] = {}
    for sample in samples:
        if sample.sample_id in first:
            raise InvalidInputError(
                f"sample id {sample.sample_id!r} occurs twice: {first[sample.sample_id]} and "
                f"{sample.origin}; embed them into separate files, or rename one"
            )
        first[sample.sample_id] = sample.origin
