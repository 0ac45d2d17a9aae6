"""The dense posterior: every subject's probability, written out; the only place where an (n, K) array is the answer."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from holue.gallery.embeddings import Float64Array, FloatArray
from holue.recognition.model.class_model import ClassModel, Prior

SUBJECTS_AT_ONCE = 8192


def log_posterior(
    directions: FloatArray, gallery: FloatArray, model: ClassModel, prior: Prior, temperature: float = 1.0
) -> tuple[Float64Array, Float64Array]:
    """``log P_T(c)`` (n, K) and ``log P_T(0)`` (n,), in float64 whatever the gallery's precision.

    ``log P_T(c) = ℓ_c/T − L_T`` and ``log P_T(0) = ℓ_0/T − L_T`` (paper, Lemmas 1 to 3, with ``log C_d(κ)`` in Lemma 3).
    """
    probes = directions.astype(np.float64, copy=False)
    joint = np.empty((len(probes), len(gallery)))
    for first in range(0, len(gallery), SUBJECTS_AT_ONCE):
        columns = slice(first, first + SUBJECTS_AT_ONCE)
        joint[:, columns] = model.link(probes @ gallery[columns].astype(np.float64, copy=False).T, 0)
    joint *= model.slope
    joint += prior.log_subject(len(gallery)) + model.height
    joint /= temperature
    unknown = prior.log_unknown / temperature
    total = np.logaddexp(logsumexp(joint, axis=1), unknown)
    joint -= total[:, None]
    return joint, unknown - total
