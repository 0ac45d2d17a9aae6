"""The saved index: how the lists and the sample of approximate evidence were drawn, without any row of the gallery.

Only row numbers are written, eight bytes a subject: the rows are taken from the gallery again, whose fingerprint must match.
"""

from __future__ import annotations

import os

import numpy as np

from holue.artifact import read_artifact, write_artifact
from holue.errors import CorruptArtifactError
from holue.evidence.block import NOBODY, Block
from holue.evidence.ivf.index import ApproximateIndex, fingerprint_of
from holue.evidence.ivf.inverted_lists import InvertedLists
from holue.evidence.ivf.living_lists import LivingLists
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
        lists = InvertedLists.from_order(known, rows, starts)
        learned = ("misfit_sharpness", "misfit", "misfit_large_sharpness", "misfit_shifts", "misfit_mean_shifts")
        calibration = TailCalibration(*(arrays[name] for name in learned))
        added = slice(len(rows), None)
        later = Block(directions[added], numbers[added], NOBODY) if len(directions) > len(rows) else None
        sample = Sample.from_places(lists, at)
        learned_with = calibration, int(content["n_probe"]), content["fingerprint"]
        return ApproximateIndex(
            lists, sample, *learned_with, numbers[: len(rows)], LivingLists.whole(lists, sample), later
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CorruptArtifactError(f"{directory}: the manifest does not describe an index ({error})") from error
