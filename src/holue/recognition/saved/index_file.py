"""The saved index: how the lists and the sample of approximate evidence were drawn, without any row of the gallery.

Only row numbers are written, eight bytes a subject: the rows are taken from the gallery again, whose fingerprint must match.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact import read_artifact, write_artifact
from holue.errors import CorruptArtifactError
from holue.evidence.block import NOBODY, Block
from holue.evidence.ivf.index import ApproximateIndex, fingerprint_of
from holue.evidence.ivf.inverted_lists import InvertedLists
from holue.evidence.ivf.living_lists import LivingLists
from holue.evidence.ivf.missed_mates import MissedMates
from holue.evidence.ivf.sample import Sample
from holue.evidence.ivf.tail_calibration import TailCalibration
from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery

KIND = "approximate index"


def save_index(index: ApproximateIndex, directory: str | os.PathLike[str]) -> None:
    """Write an index; rows enrolled after it was built are not in it, and are found again when it is loaded."""
    content = {"n_probe": index.n_probe, "fingerprint": index.fingerprint}
    arrays = {
        "rows": index.lists.rows,
        "starts": index.lists.starts,
        "sample": index.sample.at,
        "misfit_sharpness": index.calibration.sharpness,
        "misfit": index.calibration.table,
        "misfit_large_sharpness": index.calibration.large_sharpness,
        "misfit_shifts": index.calibration.shifts,
        "misfit_mean_shifts": index.calibration.mean_shifts,
        "mates_cosines": index.mates.cosines,
        "mates_lists": index.mates.lists,
        "mates_missed": index.mates.missed,
    }
    write_artifact(directory, KIND, content, arrays)


def load_index(directory: str | os.PathLike[str], gallery: Gallery | FloatArray) -> ApproximateIndex:
    """Read an index of this gallery, or of an earlier version of it to which subjects were only added since."""
    content, arrays = read_artifact(directory, KIND)
    directions = gallery.directions if isinstance(gallery, Gallery) else np.asarray(gallery)
    numbers = gallery.numbers if isinstance(gallery, Gallery) else np.arange(len(directions))
    try:
        rows, starts, at = arrays["rows"], arrays["starts"], arrays["sample"]
        known = directions[: len(rows)]
        if fingerprint_of(known) != content["fingerprint"]:
            raise CorruptArtifactError(
                f"{directory}: the index was built from another gallery, or from one whose subjects were removed, replaced or "
                f"reordered since (its first {len(rows)} rows differ); build the index again and save it"
            )
        _check(arrays, content["n_probe"])
        lists = InvertedLists.from_order(known, rows, starts)
        learned = ("misfit_sharpness", "misfit", "misfit_large_sharpness", "misfit_shifts", "misfit_mean_shifts")
        calibration = TailCalibration(*(arrays[name] for name in learned))
        added = slice(len(rows), None)
        later = Block(directions[added], numbers[added], NOBODY) if len(directions) > len(rows) else None
        sample = Sample.from_places(lists, at)
        learned_with = calibration, int(content["n_probe"]), content["fingerprint"]
        return ApproximateIndex(
            lists,
            sample,
            *learned_with,
            numbers[: len(rows)],
            LivingLists.whole(lists, sample),
            _mates(arrays, lists),
            later,
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise CorruptArtifactError(f"{directory}: the manifest does not describe an index ({error})") from error


def _mates(arrays: dict[str, npt.NDArray[Any]], lists: InvertedLists) -> MissedMates:
    """What was measured about missed mates; earlier saves have nothing, and then a threshold has all lists read."""
    if "mates_cosines" not in arrays:
        return MissedMates.unknown(len(lists))
    cosines, needed, missed = (arrays[f"mates_{name}"] for name in ("cosines", "lists", "missed"))
    if not cosines.ndim == needed.ndim == missed.ndim == 1 or not len(cosines) == len(needed) == len(missed):
        raise ValueError("mates must be columns of one length")
    if not (np.isfinite(cosines).all() and (np.diff(cosines) > 0).all() and ((missed >= 0) & (missed <= 1)).all()):
        raise ValueError("mates must hold rising cosines, and shares between 0 and 1")
    if needed.dtype != np.int64 or ((needed < 1) | (needed > len(lists))).any():
        raise ValueError(f"mates_lists must be between 1 and {len(lists)}")
    return MissedMates(cosines, needed, missed, len(lists))


def _check(arrays: dict[str, npt.NDArray[Any]], n_probe: object) -> None:
    """Refuse lists that are no partition of the rows, a sample outside them, and learned numbers that are not finite."""
    rows, starts, at = arrays["rows"], arrays["starts"], arrays["sample"]
    for name, given in (("rows", rows), ("starts", starts), ("sample", at)):
        if given.dtype != np.int64 or given.ndim != 1 or len(given) == 0:
            raise ValueError(f"{name} must be a column of int64, got {given.dtype} of shape {given.shape}")
    if not np.array_equal(np.sort(rows), np.arange(len(rows))):
        raise ValueError("rows must hold every row once")
    if starts[0] != 0 or starts[-1] != len(rows) or not (np.diff(starts) > 0).all() or (np.diff(starts, 2) > 0).any():
        raise ValueError("starts must rise from 0 to the number of rows, the longest list first")
    if at.min() < 0 or at.max() >= len(rows) or len(np.unique(at)) < len(at):
        raise ValueError("sample must hold different places among the rows")
    if len(np.unique(np.searchsorted(starts, at, side="right"))) < len(starts) - 1:
        raise ValueError("sample must hold a row of every list")
    if isinstance(n_probe, bool) or not isinstance(n_probe, int) or not 1 <= n_probe <= len(starts) - 1:
        raise ValueError(f"n_probe must be between 1 and {len(starts) - 1}, got {n_probe!r}")
    small, large = arrays["misfit_sharpness"], arrays["misfit_large_sharpness"]
    shapes = {"misfit": (4, len(small)), "misfit_shifts": (3, len(large)), "misfit_mean_shifts": (3, len(large))}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} must hold finite numbers of shape {shape}, got {arrays[name].shape}")
    for name, sharpness in (("misfit_sharpness", small), ("misfit_large_sharpness", large)):
        if (
            sharpness.ndim != 1
            or not ((sharpness > 0) & np.isfinite(sharpness)).all()
            or (np.diff(sharpness) <= 0).any()
        ):
            raise ValueError(f"{name} must hold positive numbers that rise")
