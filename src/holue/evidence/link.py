"""Link: how a class model turns a cosine into the exponent that evidence sums.

A class model weighs subject ``c`` by ``e^{a g(s_c)}``. For von Mises-Fisher classes ``g`` is the cosine itself, which is the
fast path; every other model is a link, increasing in ``s`` so that the top stays the top.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from holue.gallery.embeddings import Float64Array, FloatArray
from holue.sphere.bessel import log_hyp0f1


class Link(Protocol):
    """Cosines (n, b) of the probes ``first .. first + n`` → linked scores (n, b)."""

    def __call__(self, scores: FloatArray, first: int) -> FloatArray:
        """Apply the link to one block; ``first`` is the row of its first probe."""
        ...


def cosine_link(scores: FloatArray, first: int) -> FloatArray:
    """``g(s) = s``: von Mises-Fisher classes, ``a = κ/T``."""
    return scores


def power_link(scores: FloatArray, first: int) -> FloatArray:
    """``g(s) = ln(1 + s)``: power spherical classes, ``a = κ/T``; −inf at the antipode."""
    with np.errstate(divide="ignore"):
        return np.log1p(np.maximum(scores.astype(np.float64), -1.0))


@dataclass(frozen=True)
class ConvolvedLink:
    """``g(s) = log α(√(κ² + κ_x² + 2κκ_x s)) − log α(κ) − log α(κ_x)``: classes seen through a blurred probe, ``a = 1/T``.

    It is ``ln ∫ vMF(z; μ_c, κ) vMF(z; μ_x, κ_x) dz`` relative to the uniform density: the closed form of the paper's
    integral over the embedding distribution, numerator only.
    """

    dim: int
    concentration: float
    probe_concentrations: Float64Array

    def __call__(self, scores: FloatArray, first: int) -> FloatArray:
        """Apply the link to one block of cosines."""
        kappa, kappa_x = self.concentration, self.probe_concentrations[first : first + len(scores), None]
        squared = (kappa - kappa_x) ** 2 + 2 * kappa * kappa_x * (1 + scores.astype(np.float64))
        log_alpha: Float64Array = log_hyp0f1(self.dim, np.sqrt(np.maximum(squared, 0.0)))
        return log_alpha - log_hyp0f1(self.dim, kappa) - log_hyp0f1(self.dim, kappa_x)
