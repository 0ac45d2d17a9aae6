"""ClassCentres: one direction per subject, which the samples of that subject should point to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.embedding.training.row_blocks import Rows, row_blocks
from holue.errors import InvalidSubjectsError
from holue.gallery.embeddings import Float64Array, FloatArray, as_vectors, normalize
from holue.gallery.pooling import pool
from holue.gallery.subjects import Subjects, as_subjects


@dataclass(frozen=True, eq=False)
class ClassCentres:
    """The directions ``w_c`` (c, d) of ``subjects`` (c,), sorted.

    Either the class weights of a recogniser (:meth:`from_weights`), or the normalised mean of the unit
    embeddings of each subject (:meth:`from_samples`).
    """

    subjects: Subjects
    directions: FloatArray

    @classmethod
    def from_samples(cls, embeddings: object, subjects: object) -> ClassCentres:
        """The normalised mean direction of every subject's samples.

        >>> ClassCentres.from_samples([[1.0, 0.0], [0.0, 2.0]], ["ann", "ann"]).directions.round(3)
        array([[0.707, 0.707]])
        """
        keys, templates = pool(embeddings, subjects)
        return cls(keys, templates.directions)

    @classmethod
    def from_weights(cls, weights: object, subjects: object) -> ClassCentres:
        """The rows of a classifier's last layer, one per subject."""
        directions = normalize(as_vectors(weights, field="weights"), field="weights")
        keys = as_subjects(subjects, len(directions), field="subjects")
        order = np.argsort(keys, kind="stable")
        if len(np.unique(keys)) < len(keys):
            twice = Counter(keys.tolist()).most_common(1)[0][0]
            raise InvalidSubjectsError(f"subject {twice!r} has two rows of weights; give every subject one")
        return cls(keys[order], directions[order])

    def rows(self, subjects: Subjects) -> npt.NDArray[np.intp]:
        """The place of each subject among the centres."""
        place = np.searchsorted(self.subjects, subjects)
        place[place == len(self.subjects)] = 0
        missing = self.subjects[place] != subjects
        if missing.any():
            raise InvalidSubjectsError(
                f"subject {subjects[missing.argmax()].item()!r} has no class centre; give one for every subject"
            )
        return place

    def cosines(self, embeddings: object, subjects: object) -> Float64Array:
        """cos θ of every sample to the centre of its own subject."""
        directions = normalize(as_vectors(embeddings, field="embeddings"), field="embeddings")
        keys = as_subjects(subjects, len(directions), field="subjects")
        return _rowwise_dot(directions, self.directions[self.rows(keys)])


def leave_one_out_cosines(embeddings: object, subjects: object) -> Float64Array:
    """cos θ of every sample to the mean direction of the *other* samples of its subject.

    A sample pulls its own class mean towards itself: with two samples per class the cosine to the mean is
    ``√((1 + cos)/2)``, 0.9 where the two samples are only 0.6 alike. Leaving it out removes that.

    >>> leave_one_out_cosines([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], ["ann", "ann", "ann"]).round(3)
    array([0.316, 0.99 , 0.447])
    """
    vectors = as_vectors(embeddings, field="embeddings")
    keys = as_subjects(subjects, len(vectors), field="subjects")
    return cosines_to_others(lambda rows: vectors[rows], vectors.shape[1], keys)


def cosines_to_others(read: Callable[[Rows], FloatArray], dim: int, subjects: Subjects) -> Float64Array:
    """:func:`leave_one_out_cosines` of vectors that ``read`` gives for rows, a block at a time."""
    _require_genuine_pairs(subjects)
    _, code = np.unique(subjects, return_inverse=True)
    sums = class_sums(read, dim, code)
    cosines = np.empty(len(code))
    for rows in row_blocks(np.arange(len(code))):
        directions = _directions(read(rows))
        others = sums[code[rows]] - directions
        lengths = np.linalg.norm(others, axis=1)
        # Other samples that cancel say nothing about the direction: cosine 0.
        cosines[rows] = _rowwise_dot(directions, others) / np.where(lengths > 1e-9, lengths, np.inf)
    return cosines


def class_sums(read: Callable[[Rows], FloatArray], dim: int, code: npt.NDArray[np.intp]) -> Float64Array:
    """The sum of the directions of every class (c, d), from vectors that ``read`` gives for rows, a block at a time."""
    sums = np.zeros((int(code.max()) + 1, dim))
    for rows in row_blocks(np.arange(len(code))):
        np.add.at(sums, code[rows], _directions(read(rows)))
    return sums


def _directions(vectors: FloatArray) -> Float64Array:
    directions: Float64Array = normalize(vectors, field="embeddings").astype(np.float64)
    return directions


def in_genuine_pairs(subjects: Subjects) -> npt.NDArray[np.bool_]:
    """Which samples are of a subject with another sample, to compare them with.

    >>> in_genuine_pairs(np.array(["ann", "bob", "ann"]))
    array([ True, False,  True])
    """
    _, code, counts = np.unique(subjects, return_inverse=True, return_counts=True)
    paired: npt.NDArray[np.bool_] = counts[code] > 1
    return paired


def _require_genuine_pairs(subjects: Subjects) -> None:
    alone = subjects[~in_genuine_pairs(subjects)]
    if len(alone):
        raise InvalidSubjectsError(
            f"{len(alone)} of {len(np.unique(subjects))} subjects have one sample (first: {alone[0].item()!r}), two are "
            "needed for a genuine pair; leave them out, or give class centres from elsewhere"
        )


def _rowwise_dot(first: FloatArray, second: FloatArray) -> Float64Array:
    dots: Float64Array = np.einsum("ij,ij->i", first.astype(np.float64), second.astype(np.float64))
    return dots
