"""Archive: the zip of a data set, embedded clean or degraded."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from holue.datasets.degradation import RECIPE, Degradation, sample_generator
from holue.embedding.inputs.model_input import RawArray
from holue.embedding.inputs.samples import Sample
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile, Names
from holue.errors import InvalidFileError
from holue.experiments.cache import embed_collection, file_digest
from holue.experiments.versions import Versions
from holue.progress import Progress

Draw = Callable[[np.random.Generator], Degradation]
SEED = 762
"""Of every degradation: the same in every run, so that they are embedded once. A run's seed changes who is in which part."""


@dataclass(frozen=True, eq=False)
class Archive:
    """A zip of images or utterances and the embedder that reads them."""

    path: Path
    embedder: OnnxEmbedder
    cache_dir: Path | None = None
    progress: Progress | None = None

    @property
    def names(self) -> list[str]:
        """The members, sorted."""
        return sorted(entry.filename for entry in self._zip.infolist() if not entry.is_dir())

    def clean(self, names: Sequence[str], subjects: Sequence[str]) -> EmbeddingFile:
        """The members of these names, as they are."""
        samples = [
            Sample(name, subject, self._origin(name), partial(self._decoded, name))
            for name, subject in zip(names, subjects, strict=True)
        ]
        return self._embed(samples, "clean")

    def degraded(
        self, names: Sequence[str], subjects: Sequence[str], draw: Draw, *, version: int = 0
    ) -> tuple[EmbeddingFile, Names]:
        """The members of these names, each with a degradation drawn for it, and the labels of the degradations.

        Another ``version`` draws other degradations for the same members.
        """
        samples, labels = [], []
        for name, subject in zip(names, subjects, strict=True):
            degradation = draw(sample_generator(SEED, version, name))
            origin = f"{self._origin(name)} ({degradation.label})"
            load = partial(self._damaged, name, degradation, version)
            samples.append(Sample(f"{name} ({degradation.label})", subject, origin, load))
            labels.append(degradation.label)
        return self._embed(samples, f"{RECIPE}, seed {SEED}, version {version}"), np.array(labels)

    def versions(self, names: Sequence[str], subjects: Sequence[str], draw: Draw, count: int) -> Versions:
        """The members clean and in ``count`` degraded versions."""
        clean = self.clean(names, subjects)
        degraded = [self.degraded(names, subjects, draw, version=version) for version in range(count)]
        return Versions(clean, tuple(file for file, _ in degraded), tuple(levels for _, levels in degraded))

    @cached_property
    def _digest(self) -> str:
        return file_digest(self.path)

    @cached_property
    def _zip(self) -> zipfile.ZipFile:
        return open_zip(self.path)

    def _embed(self, samples: Sequence[Sample], treatment: str) -> EmbeddingFile:
        content = (self._digest, treatment)
        return embed_collection(
            samples, self.embedder, content=content, cache_dir=self.cache_dir, progress=self.progress
        )

    def _damaged(self, name: str, degradation: Degradation, version: int) -> RawArray:
        # A generator of its own: the damage must not depend on how many numbers the drawing of its level took.
        return degradation.apply(self._decoded(name), sample_generator(SEED + 1, version, name))

    def _decoded(self, name: str) -> RawArray:
        try:
            content = self._zip.read(name)
        except (KeyError, zipfile.BadZipFile, OSError) as error:
            raise InvalidFileError(f"{self._origin(name)}: the member cannot be read ({error})") from error
        return self.embedder.specification.model_input.decode(content, self._origin(name))

    def _origin(self, name: str) -> str:
        return f"{self.path}: {name}"


def open_zip(path: Path) -> zipfile.ZipFile:
    """The archive, or a clear error that names it."""
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file; set HOLUE_DATA to the folder that holds it")
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise InvalidFileError(f"{path}: the archive is damaged ({error}); copy it again") from error


def read_table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file that has these columns."""
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file; set HOLUE_DATA to the folder that holds it")
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for column in columns:
        if not rows or column not in rows[0]:
            raise InvalidFileError(
                f"{path}: the column {column!r} is missing; it has {', '.join(rows[0] if rows else [])}"
            )
    return rows
