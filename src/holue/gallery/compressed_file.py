"""The compressed gallery on disk: a directory of plain arrays and a manifest with their checksums.

Codes, scales and errors are read into memory, which they were made to fit; the exact rows are mapped, and only the few that a
probe asks for are read. Nothing is pickled.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact import read_artifact, write_artifact
from holue.artifact.artifact import check_manifest, check_names, read_arrays, read_json
from holue.artifact.opened import read_folder
from holue.errors import ArtifactError, CorruptArtifactError
from holue.gallery.compressed import FORMS, PADDED_TO, CompressedGallery, CompressedPart, unpack_rows
from holue.gallery.embeddings import HALF_TOLERANCE

KIND = "compressed gallery"
ARRAYS = ("codes", "scales", "errors", "exact")
MAPPED = "exact-"
EARLIER_MANIFEST, EARLIER_VERSION = "compressed.json", 1
"""How the manifest was named before all saved directories had one form; such directories are still read."""
CHECKED_ROWS = 64
"""Exact rows per part that are compared with their codes on loading: all would mean reading the whole file."""

Arrays = dict[str, npt.NDArray[Any]]


def save_compressed(compressed: CompressedGallery, directory: str | os.PathLike[str]) -> Path:
    """Write a compressed gallery with its exact rows to a new directory, all or nothing; returns its path."""
    target = Path(directory)
    if os.path.lexists(target):
        raise ArtifactError(f"{target} exists already; give the path of a new directory, or remove it first")
    parts: list[dict[str, Any]] = []
    arrays: dict[str, npt.NDArray[Any]] = {}
    start = 0
    for number, whole in enumerate(compressed.parts):
        part = whole.living()
        parts.append({"rows": len(part), "largest_norm": part.largest_norm, "residual_norm": part.residual_norm})
        arrays |= {f"{name}-{number}": getattr(part, name) for name in ARRAYS}
        if not (part.numbers[0] == start and part.numbers[-1] == start + len(part) - 1):
            arrays[f"numbers-{number}"] = part.numbers  # else they count on, and need no file
        start += len(part)
    write_artifact(target, KIND, {"form": compressed.form, "dim": compressed.dim, "parts": parts}, arrays)
    return target


def load_compressed(directory: str | os.PathLike[str]) -> CompressedGallery:
    """Read what :func:`save_compressed` wrote, with checksums; the exact rows are mapped, and some compared with their codes."""
    root = Path(directory)
    if (root / EARLIER_MANIFEST).exists():
        content, arrays = read_folder(root, lambda folder: _read_earlier(folder, root))
    else:
        content, arrays = read_artifact(root, KIND, mapped=MAPPED)
    try:
        form, dim = content["form"], content["dim"]
        if form not in FORMS or not content["parts"]:
            raise ValueError(f"form {form!r} in {len(content['parts'])} parts")
        parts, start = [], 0
        for number, described in enumerate(content["parts"]):
            codes = arrays[f"codes-{number}"]
            numbers = arrays.get(f"numbers-{number}", np.arange(start, start + len(codes)))
            start += len(codes)
            if numbers.shape != codes.shape[:1] or numbers.dtype != np.int64 or (np.diff(numbers) <= 0).any():
                raise ValueError(f"numbers-{number} must be whole numbers that rise, one per row")
            part = CompressedPart(
                codes,
                arrays[f"scales-{number}"],
                arrays[f"errors-{number}"],
                float(described["largest_norm"]),
                float(described["residual_norm"]),
                arrays[f"exact-{number}"],
                numbers,
            )
            _check_codes(part, form, dim, described["rows"])
            _check_exact(part, dim, root / f"exact-{number}.npy")
            parts.append(part)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptArtifactError(
            f"{root} is not a whole compressed gallery ({error}); restore it from a copy"
        ) from error
    return CompressedGallery(form, tuple(parts))


def _read_earlier(folder: int, root: Path) -> tuple[dict[str, Any], Arrays]:
    path = root / EARLIER_MANIFEST
    manifest = check_manifest(read_json(folder, root, EARLIER_MANIFEST), path, KIND, EARLIER_VERSION)
    files: dict[str, str | None] = {}
    try:
        for number, described in enumerate(manifest["parts"]):
            files |= {f"{name}-{number}.npy": described["sha256"].get(name) for name in ARRAYS}
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptArtifactError(f"{path} does not describe its parts ({error}); restore it from a copy") from error
    check_names(folder, root, {EARLIER_MANIFEST, *files})
    return manifest, read_arrays(folder, root, files, MAPPED)


def _check_codes(part: CompressedPart, form: str, dim: int, rows: int) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1:
        raise ValueError(f"dim is {dim!r}")
    width = -(-dim // PADDED_TO) * PADDED_TO
    wanted = np.uint16 if form == "float16" else np.int8
    if part.codes.dtype != wanted or part.codes.shape != (rows, width) or rows < 1:
        raise ValueError(f"codes are {part.codes.dtype} of shape {part.codes.shape}")
    if part.codes[:, dim:].any():
        raise ValueError("codes are not padded with zeros")
    for name, smallest in (("scales", np.finfo(np.float32).tiny), ("errors", 0.0)):
        values = getattr(part, name)
        if values.dtype != np.float32 or values.shape != (rows,) or not (values >= smallest).all():
            raise ValueError(f"{name} are not one float32 of at least {smallest} for each row")
        if not np.isfinite(values).all():
            raise ValueError(f"{name} are not finite")
    if form == "float16" and not (part.scales == 1).all():
        raise ValueError("float16 has scales other than 1")
    if not 0 <= part.residual_norm < np.inf or not 0 <= part.largest_norm < np.inf:
        raise ValueError(f"largest_norm is {part.largest_norm} and residual_norm {part.residual_norm}")


def _check_exact(part: CompressedPart, dim: int, path: Path) -> None:
    if part.exact.shape != (len(part), dim) or part.exact.dtype.kind != "f":
        raise CorruptArtifactError(
            f"{path} has shape {part.exact.shape} of {part.exact.dtype}, its codes are of ({len(part)}, {dim}); "
            "restore it from a copy"
        )
    rows = np.unique(np.linspace(0, max(len(part) - 1, 0), CHECKED_ROWS).astype(np.int64))[: len(part)]
    codes = unpack_rows(part, rows)
    residual = _norms(part.exact[rows].astype(np.float64) - codes)
    if not (residual <= part.errors[rows]).all():
        raise CorruptArtifactError(f"{path} holds other rows than those that were compressed; restore it from a copy")
    if not (_norms(codes) <= part.largest_norm).all() or not (residual <= part.residual_norm).all():
        raise ValueError("largest_norm or residual_norm is less than the rows have")
    if not (np.abs(_norms(part.exact[rows].astype(np.float64)) - 1) <= HALF_TOLERANCE).all():
        raise CorruptArtifactError(f"{path} holds rows that are no unit vectors; restore it from a copy")


def _norms(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
