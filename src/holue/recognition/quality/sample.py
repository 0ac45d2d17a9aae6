"""SampleQuality: how good the sample itself is, whoever it shows (SCF, PFE, ScaleFace)."""

from __future__ import annotations

import numpy as np

from holue.errors import InvalidInputError
from holue.gallery.embeddings import Float64Array, as_vectors
from holue.recognition.quality.score import QualityScore
from holue.recognition.reading import Reading


class SampleQuality(QualityScore):
    """``q_SCF = κ_x``; a PFE variance or a ScaleFace scale is used in its place (see below)."""

    name = "SCF"
    needs_concentration = True

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return reading.probe_concentrations


def pfe_quality(variance: object) -> Float64Array:
    """``q_PFE = −H(σ²)``, H the harmonic mean over coordinates; variance is (n, d).

    >>> pfe_quality([[1.0, 1.0], [1.0, 0.5]]).round(4).tolist()
    [-1.0, -0.6667]
    """
    sigma2 = as_vectors(variance, field="variance").astype(np.float64)
    if not (sigma2 > 0).all():
        raise InvalidInputError(
            f"variance must be positive, its smallest entry is {sigma2.min():.3g}; a head that predicts log σ² needs exp"
        )
    return np.asarray(-1.0 / np.mean(1.0 / sigma2, axis=1))


def scaleface_quality(scale: object) -> Float64Array:
    """``q_SF = s(x)``: the scale that ScaleFace predicts for each sample, checked and returned as float64."""
    s = np.asarray(scale, dtype=np.float64).reshape(-1)
    if not np.isfinite(s).all():
        raise InvalidInputError(f"scale must be finite; entry {int((~np.isfinite(s)).argmax())} is not")
    return s
