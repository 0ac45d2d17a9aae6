"""ClassModel: how subjects and strangers are spread on the sphere; it closes evidence into a posterior.

Every subject is equally likely beforehand, a stranger has prior β and a direction uniform on the sphere (paper,
section "GalUE"). Densities are taken relative to the uniform density 1/S, which cancels everywhere:

    ℓ_c = ln((1−β)/K) + h + a g(s_c),   ℓ_0 = ln β,   L_T = ln( e^{ℓ_0/T} + Σ_c e^{ℓ_c/T} )

where the model gives the link ``g``, the slope ``a`` and the height ``h``. (The paper's L is ours minus log S / T.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from holue.errors import InvalidInputError
from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.link import ConvolvedLink, Link, cosine_link, power_link
from holue.gallery.embeddings import Float64Array
from holue.sphere import power
from holue.sphere.area import log_area
from holue.sphere.bessel import log_hyp0f1, log_hyp0f1_scaled


class ClassModel(Protocol):
    """A density of embeddings around a subject, as an exponent linear in a linked cosine."""

    @property
    def link(self) -> Link:
        """``g``: cosine → linked score."""
        ...

    @property
    def slope(self) -> float:
        """``a``: the weight of the linked score in the exponent, and so the sharpness of evidence at T = 1."""
        ...

    @property
    def height(self) -> float:
        """``h``: the log-density relative to the uniform one where the linked score is 0."""
        ...


@dataclass(frozen=True)
class VonMisesFisher:
    """``p(z|c) = C_d(κ) e^{κ s_c}``: the paper's model. ``g = s``, ``a = κ``, ``h = −log α(κ)``."""

    dim: int
    concentration: float

    @property
    def link(self) -> Link:
        """The cosine itself."""
        return cosine_link

    @property
    def slope(self) -> float:
        """κ."""
        return self.concentration

    @cached_property
    def height(self) -> float:
        """``log C_d(κ) + log S = −log α(κ)``."""
        return -float(log_hyp0f1(self.dim, self.concentration))


@dataclass(frozen=True)
class PowerSpherical:
    """``p(z|c) = N_d(κ) (1 + s_c)^κ``: the authors' configurations. ``g = ln(1 + s)``, ``a = κ``."""

    dim: int
    concentration: float

    @property
    def link(self) -> Link:
        """``ln(1 + s)``."""
        return power_link

    @property
    def slope(self) -> float:
        """κ."""
        return self.concentration

    @cached_property
    def height(self) -> float:
        """``log N_d(κ) + log S``."""
        return float(power.log_normalizer(self.dim, self.concentration) + log_area(self.dim))


@dataclass(frozen=True, eq=False)
class ConvolvedVonMisesFisher:
    """Von Mises-Fisher classes seen through each probe's own uncertainty ``vMF(μ_x, κ_x)``, in closed form.

    ``∫ vMF(z; μ_c, κ) vMF(z; μ_x, κ_x) dz = C(κ) C(κ_x) / C(√(κ² + κ_x² + 2κκ_x s_c))``: a poor probe flattens the likelihoods.
    """

    dim: int
    concentration: float
    probe_concentrations: Float64Array

    @property
    def link(self) -> Link:
        """The logarithm of the convolved density relative to the uniform one."""
        return ConvolvedLink(self.dim, self.concentration, self.probe_concentrations)

    @property
    def slope(self) -> float:
        """1: the link is the whole exponent."""
        return 1.0

    @property
    def height(self) -> float:
        """0: the link is the whole exponent."""
        return 0.0


@dataclass(frozen=True)
class Prior:
    """Prior β of "not enrolled", kept as log-odds ``ln(β/(1−β))`` so that neither end rounds away."""

    log_odds: float

    @classmethod
    def of(cls, unknown_prior: float) -> Prior:
        """From the probability β in (0, 1)."""
        return cls(float(np.log(unknown_prior) - np.log1p(-unknown_prior)))

    @property
    def probability(self) -> float:
        """β."""
        return float(np.exp(self.log_unknown))

    @property
    def log_unknown(self) -> float:
        """``ln β``."""
        return -float(np.logaddexp(0.0, -self.log_odds))

    def log_subject(self, n_subjects: int) -> float:
        """``ln((1−β)/K)``."""
        return -float(np.logaddexp(0.0, self.log_odds)) - float(np.log(n_subjects))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Probabilities of "who" for n probes at temperature T, from evidence alone.

    ``log P_T(c) = ℓ_c/T − L_T``, ``log P_T(0) = ℓ_0/T − L_T``; with T = 1 it is GalUE's posterior.
    """

    log_p_unknown: Float64Array  # (n,)  ln P_T(0)
    log_p_known: Float64Array  # (n,)  ln Σ_c P_T(c)
    log_p_top: Float64Array  # (n, k) of the top subjects; −inf where unfilled
    log_total: Float64Array  # (n,)  L_T
    mean_log_known: Float64Array  # (n,)  Σ_c P_T(c) ln P_T(c) / Σ_c P_T(c)
    temperature: float
    log_subject_prior: float  # ln((1−β)/K)
    log_unknown_prior: float  # ln β

    @property
    def log_p_best(self) -> Float64Array:
        """``ln max_{c=0..K} P_T(c)``."""
        return np.maximum(self.log_p_unknown, self.log_p_top[:, 0])

    @property
    def entropy(self) -> Float64Array:
        """``−Σ_{c=0..K} P_T(c) ln P_T(c)``, in nats."""
        p_unknown, p_known = np.exp(self.log_p_unknown), np.exp(self.log_p_known)
        return -(p_known * self.mean_log_known + p_unknown * self.log_p_unknown)

    @property
    def kl_gallery(self) -> Float64Array:
        """``KL₁ = Σ_c P_T(c) [ln P_T(c) − ln((1−β)/K)]`` (paper, Lemma 2)."""
        return np.exp(self.log_p_known) * (self.mean_log_known - self.log_subject_prior)

    def kl_unknown(self, log_peak: Float64Array) -> Float64Array:
        """``KL₂ = P_T(0) [(1/T − 1) ln β + ln(p(μ_x|x) S) − L_T]`` (paper, Lemma 2, with ``1/p_T`` for ``1/p``).

        ``log_peak = ln(p(μ_x|x) S) = κ_x − log α(κ_x)`` is the height of the probe's own distribution over the uniform one.
        """
        tempered_prior = (1 / self.temperature - 1) * self.log_unknown_prior
        return np.exp(self.log_p_unknown) * (tempered_prior + log_peak - self.log_total)


def log_peak(dim: int, concentration: Float64Array) -> Float64Array:
    """``ln p(μ_x|x) + log S = κ_x − log α(κ_x)``: how far a sample's own distribution rises over the uniform one."""
    return -np.asarray(log_hyp0f1_scaled(dim, concentration))


def close(
    evidence: Evidence, column: int, model: ClassModel, prior: Prior, n_gallery: int, temperature: float = 1.0
) -> Posterior:
    """Close evidence into a posterior; ``column`` is where its sharpness is ``a/T``.

    >>> from holue.evidence.scan import scan
    >>> model, z = VonMisesFisher(2, 50.0), np.array([[1.0, 0.0]])
    >>> evidence = scan(z, np.eye(2), [50.0])
    >>> posterior = close(evidence, 0, model, Prior.of(0.5), n_gallery=2)
    >>> float(np.exp(posterior.log_p_top[0, 0]).round(3)), float(np.exp(posterior.log_p_unknown[0]).round(3))
    (0.898, 0.102)
    """
    wanted = model.slope / temperature
    taken = float(evidence.sharpness[column])
    if not math.isclose(taken, wanted, rel_tol=1e-12, abs_tol=1e-8):
        raise InvalidInputError(f"evidence was taken at sharpness {taken}, not at a/T = {wanted}")
    if evidence.n_subjects != n_gallery:
        raise InvalidInputError(
            f"evidence covers {evidence.n_subjects} of {n_gallery} subjects; merge the missing parts first"
        )
    log_subject, log_unknown = prior.log_subject(n_gallery), prior.log_unknown
    base = (log_subject + model.height) / temperature
    known = base + evidence.log_mass[:, column]
    unknown = log_unknown / temperature
    total = np.logaddexp(known, unknown)
    filled = evidence.top_index != NO_SUBJECT
    linked = np.asarray(model.link(np.where(filled, evidence.top_scores, 0.0), 0), dtype=np.float64)
    return Posterior(
        log_p_unknown=unknown - total,
        log_p_known=known - total,
        log_p_top=np.where(filled, base + wanted * linked - total[:, None], -np.inf),
        log_total=total,
        mean_log_known=base + wanted * evidence.mean_score[:, column] - total,
        temperature=temperature,
        log_subject_prior=log_subject,
        log_unknown_prior=log_unknown,
    )
