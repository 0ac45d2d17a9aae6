"""TrainingSamples: features, directions and subjects of embedded samples, split into seen and held out.

The arrays of a folder stay on disk: rows are read, cast and normalised a batch or a block at a time, so that memory does not grow
with the number of samples, but for some numbers of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.training.class_centres import ClassCentres, class_sums, cosines_to_others, in_genuine_pairs
from holue.embedding.training.row_blocks import BLOCK, Rows, row_blocks
from holue.embedding.training.train import ContentHash, TrainingSettings, held_out_rows
from holue.errors import InvalidEmbeddingsError, InvalidSubjectsError
from holue.gallery.embeddings import Float64Array, FloatArray, normalize
from holue.gallery.subjects import Subjects, as_subjects


@dataclass(frozen=True)
class FeatureScale:
    """Mean and standard deviation of every feature (f,)."""

    mean: Float32Array
    deviation: Float32Array

    @classmethod
    def of(cls, features: FloatArray, rows: Rows) -> FeatureScale:
        """Of some rows; more than ``BLOCK`` of them are summed block by block, in float64."""
        if len(rows) <= BLOCK:
            some = as_float32(features[rows])
            return cls(some.mean(axis=0).astype(np.float32), some.std(axis=0).astype(np.float32))
        # Around a first mean: the squares of features far from 0 would lose their digits.
        centre = features[rows[:BLOCK]].mean(axis=0, dtype=np.float64)
        total, squares = np.zeros_like(centre), np.zeros_like(centre)
        for block in row_blocks(rows):
            away = features[block] - centre
            total += away.sum(axis=0)
            squares += np.einsum("ij,ij->j", away, away)
        shift = total / len(rows)
        deviation = np.sqrt(np.maximum(squares / len(rows) - shift**2, 0))
        return cls((centre + shift).astype(np.float32), deviation.astype(np.float32))


@dataclass(frozen=True, eq=False)
class TrainingSamples:
    """What a head learns from; ``seen`` and ``held_out`` are rows of disjoint subjects.

    ``features`` and ``embeddings`` are as they were given, of any precision, in memory or mapped from disk.
    ``left_out`` counts the subjects that were left out because they have one sample.
    """

    features: FloatArray
    embeddings: FloatArray
    subjects: Subjects
    seen: Rows
    held_out: Rows
    left_out: int = 0

    @classmethod
    def from_file(cls, file: EmbeddingFile, settings: TrainingSettings, *, pairs: bool = False) -> TrainingSamples:
        """The samples of an embedding file that has features and subjects.

        ``pairs`` leaves out subjects with one sample: there is nothing of theirs to compare it with.
        """
        if file.features is None:
            raise InvalidEmbeddingsError(
                f"the embeddings of {file.model or 'an unnamed model'} carry no bottleneck features, on which heads "
                "are trained; embed again with a model that has them as an output"
            )
        subjects = as_subjects(file.subject_id, len(file), field="subject_id")
        paired = in_genuine_pairs(subjects) if pairs else np.ones(len(subjects), dtype=np.bool_)
        left_out = int((~paired).sum())
        if not paired.any():
            raise InvalidSubjectsError(
                f"each of the {left_out} subjects in subject_id has one sample, and a head learns from pairs of samples of "
                "one subject; give several samples of each subject"
            )
        if left_out:
            file, subjects = file.take(paired), subjects[paired]
        held_out = held_out_rows(subjects, settings, left_out=left_out)
        assert file.features is not None
        return cls(
            file.features,
            file.embeddings,
            subjects,
            np.flatnonzero(~held_out),
            np.flatnonzero(held_out),
            left_out,
        )

    @property
    def dim(self) -> int:
        """Coordinates of an embedding."""
        return int(self.embeddings.shape[1])

    @property
    def feature_dim(self) -> int:
        """Bottleneck features of a sample."""
        return int(self.features.shape[1])

    @property
    def counts(self) -> dict[str, int]:
        """How much was learned from, held-out subjects included, and how much was left out."""
        return {
            "samples": len(self.subjects),
            "subjects": len(np.unique(self.subjects)),
            "subjects_left_out": self.left_out,
        }

    @property
    def scale(self) -> FeatureScale:
        """Of the features of the seen samples."""
        return FeatureScale.of(self.features, self.seen)

    def features_at(self, rows: Rows) -> Float32Array:
        """The features of some samples (n, f)."""
        return as_float32(self.features[rows])

    def directions_at(self, rows: Rows) -> Float32Array:
        """The unit embeddings of some samples (n, d)."""
        return as_float32(normalize(wide(self.embeddings[rows]), field="embeddings"))

    def cosines(self, centres: ClassCentres | None) -> Float64Array:
        """cos θ of every sample to the centre of its subject; without centres to the mean of the subject's other samples."""
        if centres is None:
            return cosines_to_others(self.directions_at, self.dim, self.subjects)
        everyone = np.arange(len(self.subjects))
        return np.concatenate(
            [centres.cosines(self.directions_at(rows), self.subjects[rows]) for rows in row_blocks(everyone)]
        )

    def centres(self) -> ClassCentres:
        """The mean direction of every subject's samples."""
        keys, code = np.unique(self.subjects, return_inverse=True)
        return ClassCentres.from_weights(class_sums(self.directions_at, self.dim, code), keys)

    def identity(self) -> str:
        """A hash of everything here."""
        total, everyone = ContentHash(), np.arange(len(self.subjects))
        for array, at in ((self.features, self.features_at), (self.embeddings, self.directions_at)):
            total.add_blocks("<f4", array.shape, (at(rows) for rows in row_blocks(everyone)))
        total.add(self.subjects, self.seen)
        return total.hexdigest()


def as_float32(array: FloatArray) -> Float32Array:
    """A contiguous array in the precision that networks learn in."""
    return np.ascontiguousarray(array, dtype=np.float32)


def wide(array: FloatArray) -> FloatArray:
    """Half precision as single, in which a norm can be taken; others as they are."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


def batch_count(samples: int, batch_size: int) -> int:
    """Full batches in an epoch; fewer samples than a batch make one small batch."""
    return max(samples // batch_size, 1)


def shuffled_batches(rows: Rows, batch_size: int, rng: np.random.Generator) -> Iterator[Rows]:
    """The rows in random order, in full batches: a last batch of one would break batch normalisation.

    >>> [batch.tolist() for batch in shuffled_batches(np.arange(5), 2, np.random.default_rng(0))]
    [[2, 4], [3, 0]]
    """
    order = rng.permutation(rows)
    for start in range(batch_count(len(rows), batch_size)):
        yield order[start * batch_size : (start + 1) * batch_size]
