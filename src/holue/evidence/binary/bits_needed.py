"""Bits needed: one bit per coordinate or two, by how many rows a stranger's decision would need scored again.

A row has to be scored where its key ``ê + zσ`` is above the threshold. Over the draw of the rotation that has the probability
``Φ((s − τ)/σ + z)`` for a row with score ``s``. So the share of rows follows from the scores of some strangers alone, before any
code is made: some rows of the segment are asked as if they were not enrolled. The threshold is not known here. In its place
stands the score that one in a hundred of them reaches, which is where a calibrated one lies.

Where people scatter like faces, or come in families, the share is small, and one bit is the smaller and faster code. In few
dimensions, or where a gallery has no structure, it is not: two bits halve ``σ``, and hardly any row is left to score.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from holue.evidence.binary.rotation import deviations, rotated_width
from holue.evidence.block import NOBODY, Block
from holue.evidence.scan import scan
from holue.gallery.embeddings import FloatArray

STRANGERS, ROWS = 100, 16_384
"""Rows that are asked, and rows of which the share is taken; random, the same for the same gallery."""
ONE_BIT_UP_TO = 1 / 128
"""The share of rows up to which one bit is used: reading another bit takes as long as scoring so many; measured."""
_ERROR_OF_ONE_BIT = np.sqrt(np.pi / 2 - 1)  # √(1/f² − 1), with f² = 2/π
_MISSED, _REACHED = 1e-6, 0.99


def share_to_score(rows: FloatArray) -> float:
    """The mean share of unit rows (n, d) that a stranger's decision needs scored with one bit per coordinate.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(4000, 64)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> 0.1 < share_to_score(rows) < 0.5
    True
    """
    rng = np.random.default_rng(0)
    n, dim = rows.shape
    some = np.sort(rng.choice(n, min(STRANGERS, n // 2), replace=False))
    strangers = np.asarray(rows[some], dtype=np.float32)
    gone = np.zeros(n, dtype=bool)
    gone[some] = True
    best = scan(strangers, [Block(rows, np.arange(n), gone if n else NOBODY)], [], top_k=1).top_scores[:, 0]
    threshold = float(np.quantile(best, _REACHED))
    others = np.asarray(rows[np.sort(rng.choice(np.flatnonzero(~gone), min(ROWS, n - len(some)), replace=False))])
    centre = others.mean(axis=0, dtype=np.float64)
    lengths = np.sqrt(np.maximum(1.0 - 2.0 * (others @ centre) + centre @ centre, 0.0))
    width = rotated_width(dim)
    sigma = np.maximum(lengths * _ERROR_OF_ONE_BIT / np.sqrt(width - 1), 1e-9)
    scores = strangers.astype(np.float64) @ others.T
    return float(ndtr((scores - threshold) / sigma + deviations(width, _MISSED)).mean())
