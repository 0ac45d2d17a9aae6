"""Artifact: a saved directory of ``manifest.json`` and ``.npy`` files; never a pickle, never half-written."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import ArtifactError, CorruptArtifactError, NewerArtifactError, UnsafeArtifactError

MANIFEST = "manifest.json"
FORMAT_VERSION = 1
PICKLES = {".pkl", ".pickle", ".joblib", ".pt", ".pth"}

Array = npt.NDArray[Any]


def write_artifact(
    directory: str | os.PathLike[str], kind: str, content: Mapping[str, Any], arrays: Mapping[str, Array]
) -> None:
    """Write everything beside the target, then rename: a reader sees the old directory or the new one, whole."""
    target = _path(directory, "save").resolve()  # through links: the directory they name is what is replaced
    if target.exists() and not (target.is_dir() and _is_ours(target)):
        raise ArtifactError(f"{target} exists and is not a saved {kind}; choose another directory, nothing was written")
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    staging.mkdir()
    try:
        files = {}
        for name, array in arrays.items():
            path = staging / f"{name}.npy"
            with path.open("wb") as stream:
                np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
                stream.flush()
                os.fsync(stream.fileno())
            files[path.name] = _digest(path)
        manifest = {
            "format": "holue",
            "kind": kind,
            "version": FORMAT_VERSION,
            "content": content,
            "files": files,
        }
        manifest["digest"] = _content_digest(manifest)
        (staging / MANIFEST).write_text(json.dumps(manifest, indent=2, allow_nan=False, sort_keys=True) + "\n", "utf-8")
        _swap(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def read_artifact(directory: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Content and arrays of a saved directory, once every file in it is seen to be what was written."""
    root = _path(directory, "load")
    if not root.is_dir():
        raise CorruptArtifactError(f"{root} is not a directory; give the directory that save() wrote")
    pickles = sorted(path.name for path in root.rglob("*") if path.suffix in PICKLES)
    if pickles:
        raise UnsafeArtifactError(f"{root} holds a pickle ({pickles[0]}), which could run code; it was not loaded")
    manifest = _manifest(root, kind)
    files = manifest["files"]
    present = {path.name for path in root.iterdir()} - {MANIFEST}
    if present != set(files):
        odd = sorted(present ^ set(files))[0]
        state = "is missing" if odd in files else "was not written by save()"
        raise CorruptArtifactError(f"{root / odd} {state}; restore the directory from a copy or save again")
    arrays = {}
    for name, digest in files.items():
        path = root / name
        if _digest(path) != digest:
            raise CorruptArtifactError(
                f"{path} has changed since it was saved (checksum differs); restore it from a copy"
            )
        try:
            arrays[path.stem] = np.load(path, allow_pickle=False)
        except ValueError as error:
            raise UnsafeArtifactError(f"{path} is not a plain array ({error}); it was not loaded") from error
    return manifest["content"], arrays


def _manifest(root: Path, kind: str) -> dict[str, Any]:
    path = root / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise CorruptArtifactError(f"{path} is missing; give the directory that save() wrote") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptArtifactError(f"{path} cannot be read as JSON ({error}); restore it from a copy") from error
    if not isinstance(manifest, dict) or manifest.get("format") != "holue" or manifest.get("kind") != kind:
        raise CorruptArtifactError(f"{path} does not describe a saved {kind}")
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise CorruptArtifactError(f"{path} has no valid format version (got {version!r})")
    if version > FORMAT_VERSION:
        raise NewerArtifactError(
            f"{path} has format version {version}, this holue reads up to {FORMAT_VERSION}; upgrade holue"
        )
    if not isinstance(manifest.get("files"), dict) or not isinstance(manifest.get("content"), dict):
        raise CorruptArtifactError(f"{path} lacks 'files' or 'content'; restore it from a copy")
    if manifest.pop("digest", None) != _content_digest(manifest):
        raise CorruptArtifactError(f"{path} has changed since it was saved (checksum differs); restore it from a copy")
    return manifest


def _swap(staging: Path, target: Path) -> None:
    if not target.exists():
        staging.rename(target)
        return
    # A directory cannot be renamed onto a filled one: step aside first, and step back if the second rename fails.
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
    target.rename(aside)
    try:
        staging.rename(target)
    except OSError:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _is_ours(directory: Path) -> bool:
    if not any(directory.iterdir()):
        return True
    try:
        return bool(json.loads((directory / MANIFEST).read_text("utf-8")).get("format") == "holue")
    except (OSError, ValueError, AttributeError):
        return False


def _path(directory: str | os.PathLike[str], verb: str) -> Path:
    try:
        return Path(directory)
    except TypeError as error:
        raise ArtifactError(f"{verb} needs the path of a directory, got {directory!r}") from error


def _content_digest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
