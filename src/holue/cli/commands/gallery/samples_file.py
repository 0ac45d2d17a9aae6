"""Samples file: embeddings as ``holue embed`` writes them, or as CSV, for a gallery that was made for their model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from holue.artifact.archive import archive_names, read_archive
from holue.datasets.formats.npz import read_npz
from holue.datasets.formats.parquet import read_parquet
from holue.datasets.formats.sample_table import read_sample_table
from holue.datasets.formats.samples import Samples, read_samples
from holue.live.live_gallery import LiveGallery

Gallery = Annotated[str, typer.Argument(metavar="GALLERY", help="The gallery: a directory or a postgresql:// URL.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="Embeddings, .npz, .parquet or .csv.")]
By = Annotated[str | None, typer.Option(help="Who makes the change, for the log.")]


class Damaged(StrEnum):
    """What becomes of a damaged gallery."""

    refuse = "refuse"
    serve = "serve"


DamagedGallery = Annotated[
    Damaged, typer.Option(help="With serve, read the rest of a damaged gallery; its answers are incomplete.")
]


@dataclass(frozen=True, eq=False)
class SamplesFile:
    """The columns of a file that a gallery keeps; ``model`` is the fingerprint of the embedding model, where the file has one."""

    embeddings: npt.NDArray[Any]
    subjects: list[Any] | None
    media: list[str] | None
    concentration: npt.NDArray[np.float64] | None
    names: list[Any] | None
    model: str | None
    untyped: bool = False

    @classmethod
    def read(cls, path: Path, *, subjects: bool, unchecked: bool = False) -> SamplesFile:
        """Read a file; ``unchecked`` leaves bad rows in, for a gallery that lists what it leaves out."""
        required = ("embeddings", "subject_id") if subjects else ("embeddings",)
        optional = ("media_id", "concentration", "sample_id")
        columns: dict[str, Any]
        if path.suffix == ".csv":
            columns = read_sample_table(path, required=required[1:], unchecked=unchecked)
        elif unchecked:
            read = read_parquet if path.suffix == ".parquet" else read_npz
            columns = read(path, required=required, optional=optional)
        else:
            samples: Samples = read_samples(path, required=required)
            columns = samples.arrays()
        media, names, given = (columns.get(key) for key in ("media_id", "sample_id", "subject_id"))
        return cls(
            np.asarray(columns["embeddings"]),
            None if given is None else given.tolist(),
            None if media is None else [str(medium) for medium in media.tolist()],
            columns.get("concentration"),
            None if names is None else names.tolist(),
            _fingerprint(path),
            path.suffix == ".csv",
        )

    def subjects_for(self, gallery: LiveGallery) -> list[Any]:
        """The ids; those of a CSV file, which has no types, as the gallery has them."""
        given = self.subjects or []
        return as_enrolled(gallery, given) if self.untyped else given

    @property
    def fields(self) -> dict[str, Any]:
        """What is given with each sample when it is enrolled."""
        origin = None if self.names is None else [str(name) for name in self.names]
        return {"medium": self.media or "", "concentration": self.concentration, "origin": origin, "model": self.model}


def as_enrolled(gallery: LiveGallery, given: Sequence[str]) -> list[str | int]:
    """Ids given as text as the gallery has them: integers where its ids are."""
    some = gallery.subjects(limit=1)
    if some and isinstance(some[0].id, int):
        return [int(subject) if subject.lstrip("-").isdigit() else subject for subject in given]
    return list(given)


def _fingerprint(path: Path) -> str | None:
    if path.suffix != ".npz" or "fingerprint" not in archive_names(path):
        return None
    return str(read_archive(path, ["fingerprint"])["fingerprint"]) or None
