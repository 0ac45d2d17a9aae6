"""RiskController: a filter threshold under which the risk of automatic decisions stays, with a finite-sample guarantee."""

from __future__ import annotations

import warnings
from typing import Protocol, Self

import numpy as np

from holue.errors import InvalidParameterError, NotCalibratedError
from holue.gallery.embeddings import Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.checks import check_share
from holue.recognition.risk.certificate import CannotCertifyError, RiskCertificate
from holue.recognition.risk.decisions import RISKS, Development, RiskName, Unit, check_risk, check_unit
from holue.recognition.risk.fixed_sequence import Walk, walk
from holue.recognition.risk.units_needed import RANGE, units_needed
from holue.recognition.state.examination import Examination


class DependentProbesWarning(UserWarning):
    """A guarantee by probe was asked of a set in which subjects have several probes, which are not independent."""


class Certifiable(Protocol):
    """What a risk controller needs of a recogniser."""

    filter_below: float | None

    def examine(
        self,
        X: object,
        concentration: object = None,
        *,
        top_k: int = 1,
        gallery: Gallery | tuple[object, ...] | None = None,
    ) -> Examination:
        """Read probes, in a gallery of their own where one is given."""
        ...

    def certify(self, certificate: RiskCertificate, examination: Examination) -> None:
        """Filter by a certificate made from an examination, unless the recogniser was calibrated again since."""
        ...


class RiskController:
    """Chooses the loosest filter threshold that keeps a risk at its target, or says that it cannot.

    With confidence ``confidence_level`` over the draw of the development set,

        R(λ) = P(wrong | counted, quality ≥ λ)  ≤  target_level

    for future probes like the development probes, by fixed-sequence testing (see ``fixed_sequence.py``); which probes each
    risk counts, and as what, is written in ``decisions.py``. After :meth:`fit` the recogniser's ``identify`` filters
    answers under the threshold, and its ``save`` keeps the certificate.

    Parameters
    ----------
    risk : "error", "false-acceptance", "misidentification", "false-rejection", "fpir" or "fnir".
    target_level : the highest risk wanted, α.
    confidence_level : 1 − δ.
    unit : "probe" tests exact binomial tails and takes probes as independent; "subject" takes only subjects as independent
        (see ``betting.py``), and is the honest one where a subject has several probes.
    """

    certificate_: RiskCertificate

    def __init__(
        self,
        risk: RiskName = "error",
        *,
        target_level: float = 0.01,
        confidence_level: float = 0.95,
        unit: Unit = "probe",
    ) -> None:
        self.risk = risk
        self.target_level = target_level
        self.confidence_level = confidence_level
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
        """Certify a threshold on development probes, and set it on the recogniser.

        The probes must not be those that calibrated the recogniser (that is checked, probe by probe) and should be drawn as
        the later ones will be: of other people, or of the enrolled as they will be met. ``gallery`` is theirs, as in
        ``calibrate``. ``subject`` names the person behind every probe, strangers too, for ``unit="subject"``.
        """
        check_risk(self.risk)
        check_unit(self.unit)
        target = check_share("target_level", self.target_level)
        confidence = check_share("confidence_level", self.confidence_level)
        refuse_fixed_filter(recognizer)
        examination = recognizer.examine(X, concentration, gallery=gallery)
        levels = levels_of(examination)
        seen = Development.of(examination, self.risk, self.unit, y, subject)
        if self.unit == "probe" and seen.n_subjects is not None and seen.n_subjects < len(seen.decisions):
            warnings.warn(
                f"the {len(seen.decisions)} development probes show {seen.n_subjects} people, and probes of one person are "
                "not independent: the guarantee by probe is too confident; use unit='subject'",
                DependentProbesWarning,
                stacklevel=2,
            )
        found = walk(seen.decisions, levels, target, confidence)
        if found.certified is None:
            raise _cannot_certify(self.risk, self.unit, seen, found, levels, target, confidence)
        self.certificate_ = certificate(
            seen, self.risk, self.unit, found.test.name, found.certified, target, confidence
        )
        recognizer.certify(self.certificate_, examination)
        return self


def levels_of(examination: Examination) -> Float64Array:
    """The qualities of the calibration probes, which are the thresholds to try."""
    if examination.quality_levels is None:
        raise NotCalibratedError(
            "the thresholds to try are qualities of the probes that calibrated the recogniser, and this one was never "
            "calibrated: call calibrate(X_dev, y_dev) with other probes first"
        )
    return examination.quality_levels


def certificate(
    seen: Development, risk: str, unit: str, test: str, threshold: float, target: float, confidence: float | None
) -> RiskCertificate:
    """What was seen at the chosen threshold, written down."""
    decided = seen.decisions.quality >= threshold
    return RiskCertificate(
        risk=risk,
        target_level=target,
        confidence_level=confidence,
        unit=unit,
        test=test,
        filter_below=threshold,
        filtered_share=seen.filtered_share(threshold),
        n_probes=len(seen.decisions),
        n_units=seen.decisions.n_units,
        n_decided=int(decided.sum()),
        n_wrong=int((decided & seen.decisions.wrong).sum()),
        n_gallery=seen.n_gallery,
    )


def refuse_fixed_filter(recognizer: Certifiable) -> None:
    """A threshold set by hand would outrank the certified one."""
    if recognizer.filter_below is not None:
        raise InvalidParameterError(
            f"the recogniser has filter_below={recognizer.filter_below:g} set by hand, which would outrank the certified "
            "threshold; call set_params(filter_below=None) first"
        )


def _cannot_certify(
    risk: str,
    unit: str,
    seen: Development,
    found: Walk,
    levels: Float64Array,
    target: float,
    confidence: float,
) -> CannotCertifyError:
    decisions = seen.decisions
    n = len(decisions)
    message = (
        f"cannot certify risk {risk!r} (the share of {RISKS[risk]}) at most {target:g} with confidence {confidence:g} "
        f"from {n} development probes"
    )
    message += f" of {decisions.n_units} subjects" if unit == "subject" else ""
    at = found.tried[0] if len(found.tried) else -np.inf
    decided, wrong = (
        int(share.sum()) for share in (decisions.quality >= at, decisions.wrong & (decisions.quality >= at))
    )
    where = "at the strictest threshold tried" if len(found.tried) else "without a filter"
    message += (
        f": {where}, {wrong} of {decided} automatic decisions were wrong; it takes at least "
        f"{found.needed_units} {unit}s decided without an error"
    )
    found_units = units_needed(decisions, levels, target, confidence)

    def probes(units: int | None) -> int | None:
        return None if units is None else max(int(np.ceil(units * n / decisions.n_units)), n + 1)

    needed, low, high = (probes(units) for units in (found_units.units, found_units.low, found_units.high))
    more = None if needed is None else needed - n
    if low is None:
        message += ", and at the error rates seen here no number would do; raise target_level, or use a better quality"
    else:
        likely = f"with probability {RANGE:g} it takes {low}"
        message += f"; judging by the {int(decisions.wrong.sum())} wrong answers among all, "
        if needed is None:
            message += (
                f"no number of development probes like these is likely to be enough ({likely} or more, perhaps no number is "
                "enough); raise target_level"
            )
        else:
            reach = f"{likely} or more, perhaps no number is enough" if high is None else f"{likely} to {high}"
            message += (
                f"you need about {needed} development probes like these, {more} more than now ({reach}); bring them, or raise "
                "target_level"
            )
    return CannotCertifyError(
        message,
        needed_without_error=found.needed_units,
        needed_probes=needed,
        more_probes=more,
        needed_range=(low, high),
    )
