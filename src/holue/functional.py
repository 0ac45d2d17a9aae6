"""Pure functions: one formula a call, on plain arrays of unit vectors. The classes stand on these."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError, InvalidParameterError
from holue.evaluation.metrics.calibration_error import (
    brier_score,
    expected_calibration_error,
    log_loss,
    reliability_diagram,
)
from holue.evaluation.metrics.discard import error_versus_discard
from holue.evaluation.metrics.ranks import cmc, fnir_at_rank
from holue.evaluation.metrics.rates import (
    accuracy,
    detection_identification_rate,
    error_rate,
    f1,
    fnir,
    fpir,
    precision,
    recall,
)
from holue.evaluation.metrics.rejection import oracle_curve, prediction_rejection_ratio, random_curve, rejection_curve
from holue.evaluation.metrics.risk_coverage import aurc, excess_aurc
from holue.evaluation.metrics.tradeoff import det_points
from holue.evidence.evidence import Evidence, merge
from holue.evidence.scan import scan
from holue.gallery.embeddings import Float64Array, FloatArray, as_concentrations, as_directions
from holue.gallery.pooling import pool
from holue.recognition.checks import check_positive, check_share
from holue.recognition.model.class_model import Prior, VonMisesFisher, close, log_peak
from holue.recognition.model.decision_equation import (
    concentration_from_threshold,
    threshold_from_concentration,
    unknown_prior_from_threshold,
)
from holue.recognition.model.posterior import log_posterior
from holue.recognition.quality.sample import pfe_quality, scaleface_quality
from holue.sphere.bessel import mean_resultant_length
from holue.sphere.vmf import log_normalizer


def evidence(
    directions: object,
    gallery: object,
    sharpness: npt.ArrayLike,
    top_k: int = 5,
    threads: int | None = None,
    *,
    first_subject: int = 0,
) -> Evidence:
    """What gallery directions (K, d) say about probe directions (n, d), streamed: the N×K scores never exist.

    For each sharpness ``a``: ``log_mass = ln Σ_c e^{a s_c}`` and ``mean_score = Σ_c s_c e^{a s_c} / Σ_c e^{a s_c}``,
    beside the top-k cosines with their gallery rows (the smaller row first among equals; −inf and −1 where the
    gallery has fewer than k). Where ``gallery`` is one part of a larger one, ``first_subject`` is the row it begins at, so that
    :func:`merge` of the parts names the right rows.

    >>> import numpy as np
    >>> e = evidence(np.eye(2)[:1], np.eye(2), sharpness=[1.0], top_k=2)
    >>> e.top_index.tolist(), e.top_scores.tolist(), e.log_mass.round(4).tolist()
    ([[0, 1]], [[1.0, 0.0]], [[1.3133]])
    """
    probes, subjects = _pair(directions, gallery)
    if isinstance(first_subject, bool) or not isinstance(first_subject, int | np.integer) or first_subject < 0:
        raise InvalidParameterError(f"first_subject must be a whole number of at least 0, got {first_subject!r}")
    seen = scan(probes, subjects, sharpness, top_k=top_k, threads=threads)
    return seen.shifted(first_subject) if first_subject else seen


def posterior(
    directions: object,
    gallery: object,
    concentration: float,
    unknown_prior: float = 0.5,
    temperature: float = 1.0,
) -> tuple[Float64Array, Float64Array]:
    """GalUE's posterior: ``log P_T(c)`` (n, K) and ``log P_T(unknown)`` (n,); they sum to 1.

    >>> import numpy as np
    >>> log_p, log_p_unknown = posterior(np.eye(2)[:1], np.eye(2), concentration=50.0)
    >>> np.exp(log_p).round(3).tolist(), np.exp(log_p_unknown).round(3).tolist()
    ([[0.898, 0.0]], [0.102])
    """
    probes, subjects = _pair(directions, gallery)
    model = VonMisesFisher(subjects.shape[1], check_positive("concentration", concentration))
    prior = Prior.of(check_share("unknown_prior", unknown_prior))
    return log_posterior(probes, subjects, model, prior, check_positive("temperature", temperature))


def holistic_terms(
    directions: object,
    probe_concentration: object,
    gallery: object,
    concentration: float,
    unknown_prior: float = 0.5,
    temperature: float = 20.0,
) -> tuple[Float64Array, Float64Array]:
    """HolUE's two terms (n,): KL₁ over the gallery and KL₂ over the strangers (paper, Lemma 2 with its erratum).

    ``KL₁ = Σ_c P_T(c) [ln P_T(c) − ln((1−β)/K)]``,
    ``KL₂ = P_T(0) [(1/T − 1)(ln β − log S) + log C_d(κ_x) + κ_x − L_T]``.

    >>> import numpy as np
    >>> kl_gallery, kl_unknown = holistic_terms(np.eye(8)[:1], 100.0, np.eye(8), concentration=50.0)
    >>> kl_gallery.round(3).tolist(), kl_unknown.round(3).tolist()
    ([0.754], [3.684])
    """
    probes, subjects = _pair(directions, gallery)
    kappa_x = as_concentrations(probe_concentration, len(probes), field="probe_concentration")
    if kappa_x is None:
        raise InvalidConcentrationError("probe_concentration is None; HolUE needs κ_x of every probe")
    model = VonMisesFisher(subjects.shape[1], check_positive("concentration", concentration))
    prior = Prior.of(check_share("unknown_prior", unknown_prior))
    t = check_positive("temperature", temperature)
    # In float64 block by block, whatever the gallery's precision: κ_x and κ would multiply the error of a float32 cosine.
    seen = scan(probes.astype(np.float64, copy=False), subjects, [model.slope / t], top_k=1)
    tempered = close(seen, 0, model, prior, len(subjects), t)
    return tempered.kl_gallery, tempered.kl_unknown(log_peak(model.dim, kappa_x))


def _pair(directions: object, gallery: object) -> tuple[FloatArray, FloatArray]:
    widths = [X.shape[1] if getattr(X, "ndim", 0) == 2 else None for X in (directions, gallery)]  # type: ignore[attr-defined]
    if None not in widths and widths[0] != widths[1]:
        raise InvalidEmbeddingsError(
            f"directions have {widths[0]} features, the gallery has {widths[1]}: both must come from the same embedding model"
        )
    probes, subjects = as_directions(directions, field="directions"), as_directions(gallery, field="gallery")
    return probes, subjects


__all__ = [
    "accuracy",
    "aurc",
    "brier_score",
    "cmc",
    "concentration_from_threshold",
    "det_points",
    "detection_identification_rate",
    "error_rate",
    "error_versus_discard",
    "evidence",
    "excess_aurc",
    "expected_calibration_error",
    "f1",
    "fnir",
    "fnir_at_rank",
    "fpir",
    "holistic_terms",
    "log_loss",
    "log_normalizer",
    "mean_resultant_length",
    "merge",
    "oracle_curve",
    "pfe_quality",
    "pool",
    "posterior",
    "precision",
    "prediction_rejection_ratio",
    "random_curve",
    "recall",
    "rejection_curve",
    "reliability_diagram",
    "scaleface_quality",
    "threshold_from_concentration",
    "unknown_prior_from_threshold",
]
