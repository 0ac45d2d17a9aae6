"""NormConcentration: how sure an embedding is, from nothing but its length."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np
from scipy.optimize import minimize

from holue.embedding.training.class_centres import ClassCentres, leave_one_out_cosines
from holue.errors import CalibrationDataError, InvalidEmbeddingsError, InvalidFileError
from holue.gallery.embeddings import Float64Array, FloatArray, as_vectors
from holue.sphere.bessel import inverse_mean_resultant_length, mean_resultant_length
from holue.sphere.vmf import log_normalizer

LOWEST, HIGHEST = 1e-4, 1e5
"""κ stays within these multiples of the dimension: expected cosines from 1e-4 to 1 − 5e-6."""
STEEPEST = 20.0


@dataclass(frozen=True)
class NormConcentration:
    """The map ``κ(e) = exp(a + b ln ‖e‖) = e^a ‖e‖^b``, fitted by maximum likelihood.

    Recognisers trained with a margin give poor samples short embeddings, so the length orders samples by
    quality without any trained head; ``b`` learns its sign, since some recognisers do the opposite. The
    likelihood is that of genuine pairs under the von Mises-Fisher density (mathematics of SCF with two
    parameters in place of a network):

        maximise  Σ_i  log C_d(κ(e_i)) + κ(e_i) cos θ_i

    with ``θ_i`` the angle of sample ``i`` to the centre of its subject's other samples.

    >>> law = NormConcentration(intercept=1.0, slope=2.0, dim=2)
    >>> law.transform([[3.0, 4.0]]).round(3)
    array([67.957])
    """

    intercept: float
    slope: float
    dim: int

    @classmethod
    def fit(cls, embeddings: object, subjects: object, *, centres: ClassCentres | None = None) -> NormConcentration:
        """Fit on raw embeddings of development subjects, several samples each unless ``centres`` are given.

        Leave-one-out centres of few samples are noisy themselves: the concentration is then that of a sample
        around such a centre, which is what a probe meets in a gallery of few references.
        """
        vectors = as_vectors(embeddings, field="embeddings").astype(np.float64)
        dim = vectors.shape[1]
        if centres is None:
            cosines = leave_one_out_cosines(vectors, subjects)
        else:
            cosines = centres.cosines(vectors, subjects)
        mean_cosine = float(cosines.mean())
        if not 0 < mean_cosine < 1 - 1e-9:
            raise CalibrationDataError(
                f"the mean cosine of samples to their subject's centre is {mean_cosine:.6g}, it must lie "
                "between 0 and 1; check that subjects name who is shown and that samples are not copies"
            )
        log_norms = np.log(_norms(vectors))
        middle = float(log_norms.mean())
        spread = log_norms - middle

        # At the middle of the norms the two parameters are nearly independent, which the optimiser likes.
        def loss(parameters: Float64Array) -> tuple[float, Float64Array]:
            kappa = _bounded_exp(parameters[0] + parameters[1] * spread, dim)
            log_likelihood = log_normalizer(dim, kappa) + kappa * cosines
            slope = kappa * (mean_resultant_length(dim, kappa) - cosines)
            return -float(log_likelihood.mean()), np.array([slope.mean(), (slope * spread).mean()])

        start = np.array([np.log(inverse_mean_resultant_length(dim, mean_cosine)), 0.0])
        reach = (np.log(LOWEST * dim), np.log(HIGHEST * dim))
        found = minimize(
            loss,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[reach, (-STEEPEST, STEEPEST)],
            options={"gtol": 1e-9},
        )
        level, b = map(float, found.x)
        return cls(level - b * middle, b, dim)

    def transform(self, embeddings: object) -> Float64Array:
        """The concentration ``κ`` of raw, not normalised, embeddings."""
        vectors = as_vectors(embeddings, field="embeddings")
        if vectors.shape[1] != self.dim:
            raise InvalidEmbeddingsError(
                f"embeddings have {vectors.shape[1]} dimensions, the norms of {self.dim} were fitted; "
                "use embeddings of the same model"
            )
        return _bounded_exp(self.intercept + self.slope * np.log(_norms(vectors)), self.dim)

    def to_json(self) -> str:
        """The three numbers, as text.

        >>> NormConcentration(1.0, 2.0, 512).to_json()
        '{"intercept": 1.0, "slope": 2.0, "dim": 512}'
        """
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> NormConcentration:
        """What :meth:`to_json` wrote."""
        try:
            given = json.loads(text)
            law = cls(float(given["intercept"]), float(given["slope"]), int(given["dim"]))
        except (ValueError, TypeError, KeyError) as error:
            message = f"not a norm concentration: intercept, slope and dim are needed ({error})"
            raise InvalidFileError(message) from error
        if not np.isfinite([law.intercept, law.slope]).all() or law.dim < 2:
            raise InvalidFileError(f"intercept and slope must be finite and dim at least 2, got {given}")
        return law


def _norms(vectors: FloatArray) -> Float64Array:
    norms: Float64Array = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not norms.all():
        row = int(norms.argmin())
        raise InvalidEmbeddingsError(f"embeddings has a zero vector in row {row}: it has no length to read")
    return norms


def _bounded_exp(log_kappa: Float64Array, dim: int) -> Float64Array:
    return np.exp(np.clip(log_kappa, np.log(LOWEST * dim), np.log(HIGHEST * dim)))
