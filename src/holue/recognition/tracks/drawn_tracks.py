"""Drawn tracks: probes of one and of several samples, drawn from samples of known people, to calibrate on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidParameterError
from holue.gallery.embeddings import Float64Array, FloatArray, as_concentrations, as_vectors
from holue.gallery.pooling import pool_probes
from holue.gallery.subjects import Subjects, as_subjects

LENGTHS = (1, 2, 3, 5, 10)


@dataclass(frozen=True, eq=False)
class DrawnTracks:
    """Pooled probes: their directions, whom they show, their concentrations, and of how many samples each is."""

    X: FloatArray
    y: Subjects
    concentration: Float64Array
    length: npt.NDArray[np.int64]


def draw_tracks(
    X: object,
    y: object,
    concentration: object = None,
    *,
    media: object = None,
    lengths: Sequence[int] = LENGTHS,
    each: int = 10,
    rng: np.random.Generator,
) -> DrawnTracks:
    """Tracks of every length, up to ``each`` of a person, from samples drawn without repetition.

    ``y`` names everybody, strangers too: a track shows one person. A person with fewer samples than a length has no track of it.
    Bring samples as they come in use; frames that follow each other share an id in ``media``.

    A track of several samples shows at least two media. Several samples of one medium have the concentration of one sample and
    are surer: with them, the calibration would take single samples for surer than they are.

    >>> X = np.random.default_rng(0).normal(size=(12, 4))
    >>> tracks = draw_tracks(X, np.repeat(["ann", "bob"], 6), lengths=(1, 3), each=2, rng=np.random.default_rng(0))
    >>> tracks.y.tolist(), tracks.length.tolist(), tracks.concentration.tolist()
    (['ann', 'ann', 'ann', 'ann', 'bob', 'bob', 'bob', 'bob'], [1, 1, 3, 3, 1, 1, 3, 3], [1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 3.0, 3.0])
    """
    vectors = as_vectors(X)
    subjects, kappa = as_subjects(y, len(vectors)), as_concentrations(concentration, len(vectors))
    medium = np.arange(len(vectors)) if media is None else as_subjects(media, len(vectors), field="media")
    wrong = [length for length in lengths if isinstance(length, bool) or length < 1]
    if wrong or len(lengths) == 0 or each < 1:
        raise InvalidParameterError(f"lengths and each must be whole numbers of at least 1, got {lengths} and {each}")
    rows: list[npt.NDArray[np.int64]] = []
    shown: list[int] = []
    people, person = np.unique(subjects, return_inverse=True)
    for number in range(len(people)):
        own = np.flatnonzero(person == number)
        for length in lengths:
            if length == 1:
                drawn = list(rng.permutation(own)[:each, None])
            elif length <= len(own) and len(np.unique(medium[own])) > 1:
                count = 1 if length == len(own) else each
                drawn = [_drawn(own, medium[own], length, rng) for _ in range(count)]
            else:
                continue
            rows += drawn
            shown += [number] * len(drawn)
    if not rows:
        raise CalibrationDataError(
            f"nobody has the {min(lengths)} samples of the shortest track (several must show two media); bring more "
            "samples of each person, or shorter lengths"
        )
    size = np.array([len(some) for some in rows])
    taken, track = np.concatenate(rows), np.repeat(np.arange(len(rows)), size)
    _, probes = pool_probes(
        vectors[taken], track, media=medium[taken], concentration=None if kappa is None else kappa[taken]
    )
    assert probes.concentrations is not None
    return DrawnTracks(probes.directions, people[shown], probes.concentrations, size.astype(np.int64))


def _drawn(
    own: npt.NDArray[np.int64], medium: npt.NDArray[Any], length: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Some of a person's own samples, the second of another medium than the first."""
    order = rng.permutation(len(own))
    other = int(np.argmax(medium[order] != medium[order[0]]))
    order[[1, other]] = order[[other, 1]]
    return own[order[:length]]
