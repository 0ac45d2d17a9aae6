"""Versions: the same samples as they are and degraded, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.embedding.models import embedding_file
from holue.embedding.models.embedding_file import EmbeddingFile, Names
from holue.experiments.sets.quality_heads import TrainingPeople, required_features
from holue.gallery.subjects import Subjects

Mask = npt.NDArray[np.bool_]
Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Versions:
    """Clean samples, their degraded versions and the level of each of those; row i is the same sample in all of them."""

    clean: EmbeddingFile
    degraded: tuple[EmbeddingFile, ...]
    levels: tuple[Names, ...]

    @property
    def subjects(self) -> Subjects:
        """Whose sample each row is."""
        return self.clean.subject_id

    def probes(self, rows: Mask) -> tuple[EmbeddingFile, Names]:
        """Every degraded version of these rows, and its level."""
        return joined(*(file.take(rows) for file in self.degraded)), np.concatenate(
            [some[rows] for some in self.levels]
        )

    def training_people(self, people: Subjects, rank: Ranks, rng: np.random.Generator) -> TrainingPeople:
        """What heads learn of these people. Every second sample of a person is a reference; heads learn from the others.

        A sample that is part of its own centre would look better than it is.
        """
        inside = np.isin(self.subjects, people)
        reference, learning = inside & (rank % 2 == 0), inside & (rank % 2 == 1)
        versions = (self.clean, *self.degraded)
        return TrainingPeople(
            self.clean.take(reference),
            joined(*(version.take(learning) for version in versions)),
            mixed(tuple(version.take(inside) for version in versions), rng),
        )


def joined(*files: EmbeddingFile) -> EmbeddingFile:
    """Samples of one model with features, one file after the other."""
    for file in files:
        required_features(file)
    return embedding_file.joined(files)


def mixed(files: tuple[EmbeddingFile, ...], rng: np.random.Generator) -> EmbeddingFile:
    """Each sample once, from one of several versions of it."""
    chosen = rng.integers(len(files), size=len(files[0]))
    return joined(*(file.take(np.flatnonzero(chosen == version)) for version, file in enumerate(files)))


def random_rank(subjects: Subjects, rng: np.random.Generator) -> Ranks:
    """The place of each sample among those of its subject, in random order, from 0.

    >>> random_rank(np.array(["ann", "bob", "ann"]), np.random.default_rng(0)).tolist()
    [1, 0, 0]
    """
    order = np.lexsort((rng.random(len(subjects)), subjects))
    ordered = subjects[order]
    rank = np.empty(len(subjects), dtype=np.int64)
    rank[order] = np.arange(len(subjects)) - np.searchsorted(ordered, ordered)
    return rank
