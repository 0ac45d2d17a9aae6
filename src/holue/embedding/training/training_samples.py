"""TrainingSamples: features, directions and subjects of embedded samples, split into seen and held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.training.class_centres import in_genuine_pairs
from holue.embedding.training.train import TrainingSettings, content_hash, held_out_rows
from holue.errors import InvalidEmbeddingsError, InvalidSubjectsError
from holue.gallery.subjects import Subjects, as_subjects

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class TrainingSamples:
    """What a head learns from; ``seen`` and ``held_out`` are rows of disjoint subjects.

    ``left_out`` counts the subjects that were left out because they have one sample.
    """

    features: Float32Array
    directions: Float32Array
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
        return cls(
            np.ascontiguousarray(file.features, dtype=np.float32),
            np.ascontiguousarray(file.directions, dtype=np.float32),
            subjects,
            np.flatnonzero(~held_out),
            np.flatnonzero(held_out),
            left_out,
        )

    @property
    def counts(self) -> dict[str, int]:
        """How much was learned from, held-out subjects included, and how much was left out."""
        return {
            "samples": len(self.subjects),
            "subjects": len(np.unique(self.subjects)),
            "subjects_left_out": self.left_out,
        }

    def identity(self) -> str:
        """A hash of everything here."""
        return content_hash(self.features, self.directions, self.subjects, self.seen)


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
