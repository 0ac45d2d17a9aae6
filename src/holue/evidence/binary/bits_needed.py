"""Bits needed: one bit per coordinate or two, by how many rows a stranger's decision would need scored again.

A row has to be scored where its key ``ê + zσ`` is above the threshold. Over the draw of the rotation that has the probability
``Φ((s − τ)/σ + z)`` for a row with score ``s``. So the share of rows follows from the scores of some strangers alone, before any
code is made: some rows of the segment are asked as if they were not enrolled. The threshold is not known here. In its place
stands the score that one in a hundred of them reaches, which is where a calibrated one lies.

Where people scatter like faces, or come in families, the share is small, and one bit is the smaller and faster code. In few
dimensions, or where a gallery has no structure, it is not: two bits halve ``σ``, and hardly any row is left to score.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from holue.evidence.binary.rotation import deviations, rotated_width
from holue.evidence.block import Block
from holue.evidence.scan import scan
from holue.gallery.embeddings import FloatArray

STRANGERS, ROWS = 100, 16_384
"""Rows that are asked, and rows of which the share is taken; random, the same for the same gallery."""
FEW = 1 / 128
"""The share of rows that are scored about as fast as another bit of all rows is read; measured."""
_ERRORS = {1: np.sqrt(np.pi / 2 - 1), 2: np.sqrt(1 / 0.8812 - 1)}
"""√(1/f² − 1): what a normal distribution keeps in its signs is f² = 2/π, and in four levels 1 − 0.1188 (Max 1960)."""
_MISSED, _REACHED = 1e-6, 0.99


class Shares(NamedTuple):
    """The mean share of rows that a stranger's decision needs scored, with one bit per coordinate and with two."""

    one_bit: float
    two_bits: float

    @property
    def planes(self) -> int:
        """The bits that are worth their bytes."""
        return 1 if self.one_bit <= FEW else 2


def shares_to_score(rows: FloatArray) -> Shares:
    """Of unit rows (n, d), as measured on some of them.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(4000, 64)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> shares = shares_to_score(rows)
    >>> 0.1 < shares.one_bit < 0.5, shares.two_bits < 0.02, shares.planes
    (True, True, 2)
    """
    rng = np.random.default_rng(0)
    n, dim = rows.shape
    some = np.sort(rng.choice(n, min(STRANGERS, n // 2), replace=False))
    strangers = np.asarray(rows[some], dtype=np.float32)
    gone = np.zeros(n, dtype=bool)
    gone[some] = True
    best = scan(strangers, [Block(rows, np.arange(n), gone)], [], top_k=1).top_scores[:, 0]
    threshold = float(np.quantile(best, _REACHED))
    others = np.asarray(rows[np.sort(rng.choice(np.flatnonzero(~gone), min(ROWS, n - len(some)), replace=False))])
    centre = others.mean(axis=0, dtype=np.float64)
    lengths = np.sqrt(np.maximum(1.0 - 2.0 * (others @ centre) + centre @ centre, 0.0))
    width = rotated_width(dim)
    below = strangers.astype(np.float64) @ others.T - threshold
    sigma = np.maximum(lengths / np.sqrt(width - 1), 1e-9)
    z = deviations(width, _MISSED)
    return Shares(*(float(ndtr(below / (sigma * _ERRORS[planes]) + z).mean()) for planes in (1, 2)))
