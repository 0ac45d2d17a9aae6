"""Artifact: a saved directory of ``manifest.json`` and ``.npy`` files; never a pickle, never half-written."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from holue.artifact.opened import open_regular, read_folder, size_of
from holue.artifact.plain_array import Array, NotPlainError, read_array, write_array
from holue.artifact.whole import whole_folder
from holue.errors import ArtifactError, CorruptArtifactError, NewerArtifactError, UnsafeArtifactError

MANIFEST = "manifest.json"
FORMAT_VERSION = 1
LARGEST_MANIFEST = 1 << 24
KINDS = "biufU"
"""Booleans, numbers and strings."""
PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")


def write_artifact(
    directory: str | os.PathLike[str], kind: str, content: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Save content and arrays: a reader sees the earlier directory or the new one, whole, also after a crash."""
    target = _path(directory, "save").resolve()
    if target.exists() and not (target.is_dir() and _is_ours(target)):
        raise ArtifactError(f"{target} exists and is not a saved {kind}; choose another directory, nothing was written")
    with whole_folder(target) as folder:
        files = {}
        for name, array in arrays.items():
            path = folder / f"{name}.npy"
            with path.open("wb") as stream:
                write_array(stream, array)
            with path.open("rb") as written:
                files[path.name] = file_digest(written)
        manifest = {"format": "holue", "kind": kind, "version": FORMAT_VERSION, "content": content, "files": files}
        manifest["digest"] = content_digest(manifest)
        text = json.dumps(manifest, indent=2, allow_nan=False, sort_keys=True)
        (folder / MANIFEST).write_text(text + "\n", "utf-8")


def read_artifact(
    directory: str | os.PathLike[str], kind: str, *, mapped: str | None = None
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Content and arrays of a saved directory, all of one save, once every file in it is seen to be what was written.

    Arrays whose name begins with ``mapped`` are left on disk: they are not compared with their checksum.
    """
    root = _path(directory, "load")

    def read(folder: int) -> tuple[dict[str, Any], dict[str, Array]]:
        manifest = _manifest(folder, root, kind)
        check_names(folder, root, {MANIFEST, *manifest["files"]})
        files = manifest["files"]
        return manifest["content"], read_arrays(folder, root, files, mapped)

    return read_folder(root, read)


def check_names(folder: int, root: Path, expected: set[str]) -> None:
    """Refuse a folder with a pickle in it, and one with a file more or less than was saved."""
    present = set(os.listdir(folder))
    pickles = sorted(name for name in present if name.lower().endswith(PICKLES))
    if pickles:
        raise UnsafeArtifactError(f"{root} holds a pickle ({pickles[0]}), which could run code; it was not loaded")
    if present != expected:
        odd = sorted(present ^ expected)[0]
        state = "is missing" if odd in expected else "was not written by save()"
        raise CorruptArtifactError(f"{root / odd} {state}; restore the directory from a copy or save again")


def read_arrays(folder: int, root: Path, files: Mapping[str, str | None], mapped: str | None) -> dict[str, Array]:
    """The arrays in files with these checksums, by name; all are opened before one is read."""
    with ExitStack() as opened:
        streams = {name: opened.enter_context(_open(folder, root, name)) for name in files}
        arrays = {}
        for name, digest in files.items():
            is_mapped = mapped is not None and name.startswith(mapped)
            if not is_mapped and file_digest(streams[name]) != digest:
                raise CorruptArtifactError(
                    f"{root / name} has changed since it was saved (checksum differs); restore it from a copy"
                )
            arrays[name.removesuffix(".npy")] = _array(streams[name], root / name, mapped=is_mapped)
        return arrays


def read_json(folder: int, root: Path, name: str) -> Any:
    """What a JSON file of an opened folder holds; NaN and infinity are no JSON, and refused."""
    try:
        with open_regular(name, within=folder) as stream:
            if size_of(stream) > LARGEST_MANIFEST:
                raise ValueError(f"{size_of(stream)} bytes are more than any manifest has")
            found = json.loads(stream.read().decode("utf-8"), parse_constant=_refuse_constant)
            _refuse_infinite(found)
            return found
    except FileNotFoundError as error:
        raise CorruptArtifactError(f"{root / name} is missing; give the directory that save() wrote") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptArtifactError(f"{root / name} cannot be read as JSON ({error}); restore it from a copy") from error


def content_digest(manifest: Mapping[str, Any]) -> str:
    """The checksum of a manifest without its checksum."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def file_digest(stream: BinaryIO) -> str:
    """The checksum of an open file."""
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def check_manifest(manifest: Any, path: Path, kind: str, version: int) -> dict[str, Any]:
    """A manifest of this kind and of a known version, its checksum taken out and found right."""
    if not isinstance(manifest, dict) or manifest.get("format") != "holue" or manifest.get("kind") != kind:
        raise CorruptArtifactError(f"{path} does not describe a saved {kind}")
    given = manifest.get("version")
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise CorruptArtifactError(f"{path} has no valid format version (got {given!r})")
    if given > version:
        raise NewerArtifactError(f"{path} has format version {given}, this holue reads up to {version}; upgrade holue")
    if manifest.pop("digest", None) != content_digest(manifest):
        raise CorruptArtifactError(f"{path} has changed since it was saved (checksum differs); restore it from a copy")
    return manifest


def _manifest(folder: int, root: Path, kind: str) -> dict[str, Any]:
    path = root / MANIFEST
    manifest = check_manifest(read_json(folder, root, MANIFEST), path, kind, FORMAT_VERSION)
    if not isinstance(manifest.get("files"), dict) or not isinstance(manifest.get("content"), dict):
        raise CorruptArtifactError(f"{path} lacks 'files' or 'content'; restore it from a copy")
    return manifest


def _open(folder: int, root: Path, name: str) -> BinaryIO:
    try:
        return open_regular(name, within=folder)
    except FileNotFoundError as error:
        raise CorruptArtifactError(
            f"{root / name} is missing; restore the directory from a copy or save again"
        ) from error
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(f"{root / name} cannot be read ({error}); restore it from a copy") from error


def _array(stream: BinaryIO, path: Path, *, mapped: bool) -> Array:
    stream.seek(0)
    try:
        array = read_array(stream, size_of(stream), mapped=mapped)
        if array.dtype.kind not in KINDS:
            raise NotPlainError(f"dtype {array.dtype} is neither numbers nor strings")
        return array
    except NotPlainError as error:
        kind = UnsafeArtifactError if error.pickled else CorruptArtifactError
        raise kind(f"{path} is not a plain array ({error}); it was not loaded") from error
    except OSError as error:
        raise CorruptArtifactError(f"{path} cannot be read ({error}); restore it from a copy") from error


def _is_ours(directory: Path) -> bool:
    if not any(directory.iterdir()):
        return True
    try:
        manifest = read_folder(directory, lambda folder: read_json(folder, directory, MANIFEST))
    except ArtifactError:
        return False
    return isinstance(manifest, dict) and manifest.get("format") == "holue"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _refuse_infinite(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _refuse_infinite(each)


def _path(directory: str | os.PathLike[str], verb: str) -> Path:
    try:
        return Path(directory)
    except TypeError as error:
        raise ArtifactError(f"{verb} needs the path of a directory, got {directory!r}") from error
