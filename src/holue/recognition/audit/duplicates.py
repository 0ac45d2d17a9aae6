"""Duplicates: pairs of enrolled subjects that are likely to be one person."""

from __future__ import annotations

import numpy as np

from holue.errors import InvalidEmbeddingsError
from holue.evidence.leave_one_out import evidence_of_others
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.left_out import LeftOut, Rows
from holue.recognition.audit.agreement import Agreement
from holue.recognition.audit.populations import Faults, SamePerson

LIKELY = 0.5
"""Probability from which a fault is reported."""

HEAVY_TAIL = 4.0
"""Degrees of freedom of how the halves of a person agree: some people vary far more than most."""

NEIGHBOURS = 5
BEYOND_CHANCE = 3.0


def duplicate_pairs(
    left: LeftOut,
    near: tuple[Rows, Float64Array] | None = None,
    threads: int | None = None,
    *,
    weigh_mutual: bool = True,
) -> tuple[Rows, Float64Array]:
    """Pairs of gallery rows (m, 2) likely to be one person, with that probability, the likeliest first.

    Where all subjects share a direction they are judged without it. ``near`` are the :func:`neighbours`, where they are there.
    With ``weigh_mutual``, two subjects who are each other's nearest count for more (:func:`favour_of_mutual`): more pairs of one
    person are found, and more pairs of two people are reported.
    """
    _check_differ(left)
    directions = centred_samples(left)
    if directions is not None:
        left, near = LeftOut.of(directions, left.row, media=left.medium, kept=left.weight > 0), None
    return _likely_pairs(left, *(near or neighbours(left, threads)), weigh_mutual)


def centred_samples(left: LeftOut) -> FloatArray | None:
    """The samples' directions without the direction that all subjects share; None where they share none beyond chance.

    Cosines of some models (of voices, often) are high between any two people because of such a direction, and then say little
    about who is the same person. The mean of K templates that share nothing has a length of about 1/√K.
    """
    templates = left.gallery.directions.astype(np.float64)
    common = templates.mean(axis=0)
    if float(np.linalg.norm(common)) <= BEYOND_CHANCE / np.sqrt(len(templates)):
        return None
    return np.asarray(left.samples.directions - common, dtype=left.samples.directions.dtype)


def neighbours(left: LeftOut, threads: int | None = None) -> tuple[Rows, Float64Array]:
    """The nearest other templates of every template, best first: gallery rows and cosines (K, up to 5)."""
    gallery = left.gallery
    k = min(NEIGHBOURS, len(gallery) - 1)
    rows = np.arange(len(gallery))
    evidence = evidence_of_others(gallery.directions, rows, gallery, [], top_k=k, threads=threads)
    return evidence.top_index, np.asarray(evidence.top_scores, dtype=np.float64)


def _check_differ(left: LeftOut) -> None:
    rows = left.samples.directions
    some = rows[:: max(len(rows) // 8, 1)]
    if len(left.gallery) > 1 and (some == rows[0]).all() and (rows == rows[0]).all():
        raise InvalidEmbeddingsError(
            f"all {len(rows)} samples have the same embedding: the model tells nothing apart, or the file was written wrongly; "
            "embed the samples again"
        )


def _likely_pairs(left: LeftOut, near: Rows, cosine: Float64Array, weigh_mutual: bool) -> tuple[Rows, Float64Array]:
    """As :func:`duplicate_pairs`, of templates whose nearest others and their cosines (K, k) are there.

    Where no subject has two samples nothing is known of how samples of one person agree, and the cosine is judged alone.
    """
    agreement = Agreement.of(left)
    if agreement is None:
        score, same = cosine, SamePerson.of(np.empty(0))
    else:
        score, same = agreement.between(near, cosine), SamePerson.of(agreement.of_halves, HEAVY_TAIL)
    best, flat = score.max(axis=1), score.ravel()
    place = score.argmax(axis=1)
    favour = np.zeros(len(best))
    if weigh_mutual:
        favour = favour_of_mutual(near[np.arange(len(near)), place], best, same)
    # A person enrolled three times has two partners: every neighbour is judged, by what the best of each subject teach.
    faults = Faults.fitted(best, favour, best, same, len(near) - 1)
    further = np.where(np.arange(near.shape[1]) == place[:, None], favour[:, None], 0.0)
    probability = faults.probability(flat, further.ravel())
    pairs = np.sort(np.column_stack([np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()]), axis=1)
    likely = np.flatnonzero(probability >= LIKELY)
    likely = likely[np.argsort(-flat[likely], kind="stable")]
    _, first = np.unique(pairs[likely], axis=0, return_index=True)
    chosen = likely[np.sort(first)]
    return pairs[chosen], probability[chosen]


def favour_of_mutual(partner: Rows, best: Float64Array, same: SamePerson) -> Float64Array:
    """Log-odds (K,) for one person where a subject and its best other are each other's best: two enrolments of a person are.

    Two people are only sometimes, at the rate seen among those who are likely to be two. Who is not mutual is not held against
    a pair: of a person enrolled three times two pairs are not.
    """
    mutual = partner[partner] == np.arange(len(partner))
    plain = Faults.fitted(best, np.zeros(len(best)), best, same, len(best) - 1)
    strangers = plain.probability(best) < LIKELY
    rate = (mutual[strangers].sum() + 1) / (strangers.sum() + 2)
    return np.where(mutual, -np.log(rate), 0.0)
