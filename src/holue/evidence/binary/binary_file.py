"""The binary gallery on disk: a directory of plain arrays and a manifest with their checksums.

Codes, weights and deviations are read into memory; the exact rows are mapped, and only those that probes ask for are read. Rows
of those who have left are not written. Nothing is pickled.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact import read_artifact, write_artifact
from holue.errors import ArtifactError, CorruptArtifactError
from holue.evidence.binary.bit_planes import planes_of
from holue.evidence.binary.part import BLOCK_ROWS, BinaryPart, aligned_zeros, pack_signs, summary_of, unpack_signs
from holue.evidence.binary.rotation import SEED, rotated_width, rotation
from holue.evidence.binary.scan import BinaryGallery
from holue.gallery.embeddings import HALF_TOLERANCE

KIND = "binary gallery"
ARRAYS = ("codes", "weights", "deviations", "scale", "centre", "exact", "numbers")
LEARNED = ("shared", "mean_factor", "one_bit_share")
MAPPED = "exact-"
CHECKED_ROWS = 64
"""Exact rows per part that are compared with their codes on loading: all would mean reading the whole file."""
OTHER_SIGNS = 0.01
"""At most this share of the signs may differ, where a coordinate is 0 up to rounding."""


def save_binary(gallery: BinaryGallery, directory: str | os.PathLike[str]) -> Path:
    """Write a binary gallery with its exact rows to a new directory, all or nothing; returns its path."""
    target = Path(directory)
    if os.path.lexists(target):
        raise ArtifactError(f"{target} exists already; give the path of a new directory, or remove it first")
    parts: list[dict[str, Any]] = []
    arrays: dict[str, npt.NDArray[Any]] = {}
    for number, whole in enumerate(part for part in gallery.parts if part.n_living):
        part = living(whole)
        known = {name: getattr(part, name) for name in LEARNED}
        parts.append({"rows": len(part), **known})
        arrays |= {f"{name}-{number}": getattr(part, name) for name in ARRAYS}
    write_artifact(target, KIND, {"dim": gallery.parts[0].dim, "seed": SEED, "parts": parts}, arrays)
    return target


def load_binary(directory: str | os.PathLike[str]) -> BinaryGallery:
    """Read what :func:`save_binary` wrote, with checksums; the exact rows are mapped, and some compared with their codes."""
    root = Path(directory)
    content, arrays = read_artifact(root, KIND, mapped=MAPPED)
    try:
        if content["seed"] != SEED or not content["parts"]:
            raise ValueError(f"seed {content['seed']!r}, {len(content['parts'])} parts")
        parts = []
        for number, described in enumerate(content["parts"]):
            share = described.get("one_bit_share")
            part = BinaryPart(
                **(own := {name: arrays[f"{name}-{number}"] for name in ARRAYS}),
                **_summary(own),
                shared=float(described["shared"]),
                mean_factor=float(described["mean_factor"]),
                one_bit_share=None if share is None else float(share),
            )
            _check(part, content["dim"], described["rows"])
            parts.append(part)
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptArtifactError(f"{root} is not a whole binary gallery ({error}); restore it from a copy") from error
    return BinaryGallery(tuple(parts))


def living(part: BinaryPart) -> BinaryPart:
    """A copy without the rows of those who left."""
    if part.gone is None:
        return part
    there = ~part.gone
    rows = int(there.sum())
    codes = aligned_zeros((-(-rows // BLOCK_ROWS), *part.codes.shape[1:]))
    pack_signs(unpack_signs(part.codes, len(part))[there], codes)
    weights, deviations = part.weights[there], part.deviations[there]
    own = *summary_of(weights, deviations, part.scale), part.exact[there], part.numbers[there]
    known = {name: getattr(part, name) for name in LEARNED}
    return BinaryPart(codes, weights, deviations, part.scale, part.centre, *own, **known)


def _summary(arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    if not arrays["weights"].shape == arrays["deviations"].shape == arrays["numbers"].shape != (0,):
        raise ValueError("weights, deviations and numbers are not as many")
    return dict(
        zip(("extremes", "typical"), summary_of(*(arrays[name] for name in ("weights", "deviations", "scale"))))
    )


def _check(part: BinaryPart, dim: int, rows: int) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int) or dim < 1 or rows < 1:
        raise ValueError(f"dim is {dim!r}, of {rows!r} rows")
    width = rotated_width(dim)
    planes = 2 if part.codes.ndim == 3 and part.codes.shape[1] == 2 * width // 8 else 1
    wanted = {
        "codes": ((-(-rows // BLOCK_ROWS), planes * width // 8, BLOCK_ROWS), "u1"),
        "weights": ((rows,), "u2"),
        "deviations": ((rows,), "u2"),
        "scale": ((4,), "f8"),
        "centre": ((dim,), "f8"),
        "numbers": ((rows,), "i8"),
    }
    for name, (shape, kind) in wanted.items():
        value = getattr(part, name)
        if value.shape != shape or value.dtype != np.dtype(kind):
            raise ValueError(f"{name} are {value.dtype} of shape {value.shape}, not {kind} of {shape}")
    if part.exact.shape != (rows, dim) or part.exact.dtype.kind != "f":
        raise ValueError(f"exact rows are {part.exact.dtype} of shape {part.exact.shape}, not of {(rows, dim)}")
    if (np.diff(part.numbers) <= 0).any():
        raise ValueError("numbers must rise")
    finite = np.isfinite(part.scale).all() and np.isfinite(part.centre).all()
    if part.one_bit_share is not None and not 0 <= part.one_bit_share <= 1:
        raise ValueError(f"one_bit_share is {part.one_bit_share}")
    if not finite or (part.scale < 0).any() or not 0 <= part.shared < np.inf or not 1 <= part.mean_factor < np.inf:
        raise ValueError("scale, centre, shared or mean_factor is not a number that can be")
    some = np.unique(np.linspace(0, rows - 1, CHECKED_ROWS).astype(np.int64))
    given = np.asarray(part.exact[some], dtype=np.float64)
    if not (np.abs(np.sqrt(np.einsum("ij,ij->i", given, given)) - 1) <= HALF_TOLERANCE).all():
        raise ValueError("exact rows are no unit vectors")
    signs = planes_of((given - part.centre) @ rotation(dim), planes)
    if (signs != unpack_signs(part.codes, rows)[some]).mean() > OTHER_SIGNS:
        raise ValueError("exact rows are other than those the codes are of")
