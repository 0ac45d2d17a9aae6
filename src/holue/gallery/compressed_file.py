"""The compressed gallery on disk: a directory of plain arrays and a manifest with their checksums.

Codes, scales and errors are read into memory, which they were made to fit; the exact rows are mapped, and only the few that a
probe asks for are read. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from holue.errors import ArtifactError, CorruptArtifactError, NewerArtifactError
from holue.gallery.compressed import FORMS, CompressedGallery, CompressedPart, unpack_rows

FORMAT_VERSION = 2
"""Since 2 a part may have numbers of its own."""
MANIFEST = "compressed.json"
ARRAYS = ("codes", "scales", "errors")
CHECKED_ROWS = 64
"""Exact rows per part that are compared with their codes on loading: all would mean reading the whole file."""


def save_compressed(compressed: CompressedGallery, directory: str | os.PathLike[str]) -> Path:
    """Write a compressed gallery with its exact rows to a new directory, all or nothing; returns its path."""
    target = Path(directory)
    if target.exists():
        raise ArtifactError(f"{target} exists already; give the path of a new directory, or remove it first")
    staging = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    staging.mkdir(parents=True)
    try:
        _write(compressed, staging)
        staging.rename(target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return target


def _write(compressed: CompressedGallery, directory: Path) -> None:
    parts: list[dict[str, Any]] = []
    start = 0
    for number, whole in enumerate(compressed.parts):
        part = whole.living()
        # Earlier versions of the format number all rows from 0 on, and need no file for it.
        numbered = bool(part.numbers[0] == start and part.numbers[-1] == start + len(part) - 1)
        names = ARRAYS if numbered else (*ARRAYS, "numbers")
        start += len(part)
        for name in (*names, "exact"):
            np.save(directory / f"{name}-{number}.npy", getattr(part, name), allow_pickle=False)
        digests = {name: _digest(directory / f"{name}-{number}.npy") for name in names}
        norms = {"largest_norm": part.largest_norm, "residual_norm": part.residual_norm}
        parts.append({"rows": len(part), **norms, "sha256": digests})
    numbered = any("numbers" in part["sha256"] for part in parts)
    manifest = {"format": "holue", "kind": "compressed gallery", "version": FORMAT_VERSION if numbered else 1}
    content = manifest | {"form": compressed.form, "dim": compressed.dim, "parts": parts}
    text = json.dumps(content | {"digest": _content_digest(content)}, indent=1)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def load_compressed(directory: str | os.PathLike[str]) -> CompressedGallery:
    """Read what :func:`save_compressed` wrote, with checksums; the exact rows are mapped, and some compared with their codes."""
    root = Path(directory)
    manifest = _manifest(root)
    parts, start = [], 0
    try:
        for number, described in enumerate(manifest["parts"]):
            arrays = {}
            for name, digest in described["sha256"].items():
                path = root / f"{name}-{number}.npy"
                if _digest(path) != digest:
                    raise CorruptArtifactError(
                        f"{path} has changed since it was saved (checksum differs); restore it from a copy"
                    )
                arrays[name] = np.load(path, allow_pickle=False)
            exact = np.load(root / f"exact-{number}.npy", mmap_mode="r", allow_pickle=False)
            norms = described["largest_norm"], described["residual_norm"]
            codes, numbers = arrays["codes"], arrays.get("numbers")
            if numbers is None:
                numbers = np.arange(start, start + len(codes))
            start += len(codes)
            part = CompressedPart(codes, arrays["scales"], arrays["errors"], *norms, exact, numbers)
            _check_exact(part, manifest["dim"], root / f"exact-{number}.npy")
            parts.append(part)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorruptArtifactError(
            f"{root} is not a whole compressed gallery ({error}); restore it from a copy"
        ) from error
    return CompressedGallery(manifest["form"], tuple(parts))


def _check_exact(part: CompressedPart, dim: int, path: Path) -> None:
    if part.exact.shape != (len(part), dim):
        raise CorruptArtifactError(
            f"{path} has shape {part.exact.shape}, its codes are of ({len(part)}, {dim}); restore it from a copy"
        )
    rows = np.unique(np.linspace(0, max(len(part) - 1, 0), CHECKED_ROWS).astype(np.int64))[: len(part)]
    residual = part.exact[rows].astype(np.float64) - unpack_rows(part, rows)
    if (np.sqrt(np.einsum("ij,ij->i", residual, residual)) > part.errors[rows]).any():
        raise CorruptArtifactError(f"{path} holds other rows than those that were compressed; restore it from a copy")


def _manifest(root: Path) -> dict[str, Any]:
    path = root / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(
            f"{path} cannot be read ({error}); give the directory that save_compressed wrote"
        ) from error
    if not isinstance(manifest, dict) or manifest.get("kind") != "compressed gallery":
        raise CorruptArtifactError(f"{path} does not describe a compressed gallery")
    if not isinstance(manifest.get("version"), int) or manifest["version"] > FORMAT_VERSION:
        raise NewerArtifactError(
            f"{path} has format version {manifest.get('version')!r}, this holue reads up to {FORMAT_VERSION}; upgrade holue"
        )
    if manifest.pop("digest", None) != _content_digest(manifest) or manifest.get("form") not in FORMS:
        raise CorruptArtifactError(f"{path} has changed since it was saved (checksum differs); restore it from a copy")
    return manifest


def _content_digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
