"""ExpectedRiskController: a filter threshold that keeps a risk at its target on average, by conformal risk control.

Angelopoulos, Bates, Fisch, Lei, Schuster 2022. The loss of a unit is the share of its counted probes that are decided
automatically *and* wrongly; it lies in [0, 1] and can only grow as the filter loosens. With n exchangeable units the loosest
threshold with

    ( Σ_i loss_i(λ) + 1 ) / (n + 1)  ≤  α

has E[loss of the next unit] ≤ α. A rate among automatic decisions alone is a ratio, which is not monotone and has no such
theorem: that is what ``RiskController`` is for. This one needs far fewer probes (1/α − 1 without an error) and promises less.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from holue.gallery.gallery import Gallery
from holue.recognition.checks import check_share
from holue.recognition.risk.certificate import CannotCertifyError, RiskCertificate
from holue.recognition.risk.controller import Certifiable, certificate, refuse_fixed_filter
from holue.recognition.risk.decisions import Decisions, Development, RiskName, Unit, check_risk, check_unit


class ExpectedRiskController:
    """Chooses the loosest filter threshold with ``E[share of probes decided automatically and wrongly] ≤ target_level``.

    The expectation is over the development set and the next unit (probe, or subject) together. ``risk`` and ``unit`` are
    those of :class:`holue.recognition.risk.controller.RiskController`, and :meth:`fit` is used alike.
    """

    certificate_: RiskCertificate

    def __init__(self, risk: RiskName = "error", *, target_level: float = 0.01, unit: Unit = "probe") -> None:
        self.risk = risk
        self.target_level = target_level
        self.unit = unit

    def fit(
        self,
        recognizer: Certifiable,
        X: object,
        y: object,
        concentration: object = None,
        *,
        gallery: Gallery | tuple[object, ...] | None = None,
        subject: object = None,
    ) -> Self:
        """Choose the threshold on development probes that did not calibrate the recogniser, and set it there."""
        check_risk(self.risk)
        check_unit(self.unit)
        target = check_share("target_level", self.target_level)
        refuse_fixed_filter(recognizer)
        examination = recognizer.examine(X, concentration, gallery=gallery)
        seen = Development.of(examination, self.risk, self.unit, y, subject)
        threshold = expected_risk_threshold(seen.decisions, target)
        self.certificate_ = certificate(seen, self.risk, self.unit, "conformal risk control", threshold, target, None)
        recognizer.certify(self.certificate_, examination)
        return self


def expected_risk_threshold(decisions: Decisions, target: float) -> float:
    """The loosest λ with ``(Σ_i loss_i(λ) + 1) / (n + 1) ≤ α``; −inf where nothing needs to be filtered.

    >>> quality, wrong = np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, False])
    >>> expected_risk_threshold(Decisions(quality, wrong, np.arange(4)), target=0.4) > 0.1
    True
    """
    n = decisions.n_units
    allowed = target * (n + 1) - 1
    if allowed < -1e-9:
        needed = int(np.ceil(1 / target - 1e-9)) - 1
        raise CannotCertifyError(
            f"cannot hold an expected risk of {target:g} with {n} units: it takes at least {needed}, {needed - n} more; "
            "bring them, or raise target_level",
            needed_without_error=needed,
            needed_probes=needed,
            more_probes=needed - n,
            needed_range=(needed, needed),
        )
    size = np.bincount(decisions.unit)
    errors = np.flatnonzero(decisions.wrong)
    errors = errors[np.argsort(-decisions.quality[errors], kind="stable")]
    spent = np.cumsum(1 / size[decisions.unit[errors]])
    over = np.flatnonzero(spent > allowed + 1e-9)
    # Just above the first error that is too many; errors of equal quality go with it.
    return float(np.nextafter(decisions.quality[errors[over[0]]], np.inf)) if len(over) else -np.inf
