"""Look-alikes in a leave-one-out calibration: pairs of subjects who set its threshold.

When one of two look-alikes is left out, the other is still enrolled, and the sample of the one is accepted as the other. If
strangers in use have no look-alikes in the gallery, the threshold is then too high. The gallery does not say whether they have.
"""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.gallery.left_out import Mask, Rows

MAJORITY = 0.5
FEWER = 0.1
"""Pairs are named where without them less than this part of the target would be accepted."""


def threshold_setting_pairs(row: Rows, score: Float64Array, other: Rows, threshold: float, target_fpir: float) -> Rows:
    """Pairs of subjects (m, 2) without whom far fewer left-out samples than ``target_fpir`` reach the threshold; else none.

    ``row`` is the subject of each sample, ``score`` and ``other`` are its best other subject's. A pair is two subjects who are
    each other's best for most of their samples, some of which reach the threshold.

    >>> row, other = np.array([0, 0, 1, 1, 2, 3, 4]), np.array([1, 1, 0, 0, 0, 2, 2])
    >>> threshold_setting_pairs(row, np.array([0.9, 0.8, 0.9, 0.8, 0.1, 0.2, 0.3]), other, 0.7, 0.4).tolist()
    [[0, 1]]
    """
    subjects, code, count = np.unique(row, return_inverse=True, return_counts=True)
    pairs, pair, votes = np.unique(np.column_stack([row, other]), axis=0, return_inverse=True, return_counts=True)
    reached = np.bincount(pair.ravel(), score >= threshold) > 0
    often = votes > MAJORITY * count[np.searchsorted(subjects, pairs[:, 0])]
    found = {(int(a), int(b)): bool(at) for (a, b), at in zip(pairs[often], reached[often])}
    mutual = np.array(
        [(a, b) for a, b in found if a < b and (b, a) in found and (found[a, b] or found[b, a])], dtype=np.int64
    ).reshape(-1, 2)
    weight: Float64Array = 1.0 / count[code]
    rest: Mask = ~np.isin(row, mutual)
    accepted = float(weight[rest & (score >= threshold)].sum() / max(weight[rest].sum(), 1.0))
    return mutual if accepted < FEWER * target_fpir else mutual[:0]
