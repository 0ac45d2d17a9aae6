"""Certifying: a calibration with a risk that is guaranteed, from labelled probes that it was not made from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holue.errors import CalibrationDataError
from holue.gallery.gallery import Gallery
from holue.live.calibration.calibrations import StoredCalibration
from holue.live.version import GalleryVersion
from holue.recognition.calibration.fingerprint import Fingerprints
from holue.recognition.risk.certificate import RiskCertificate
from holue.recognition.risk.controller import RiskController
from holue.recognition.state.examination import Examination
from holue.recognition.state.moment import Moment
from holue.recognition.state.state import State


class _Certifiable:
    """A version of a gallery as a risk controller reads it."""

    def __init__(self, version: GalleryVersion, learned_from: Fingerprints | None) -> None:
        self._version, self._learned_from = version, learned_from
        self.filter_below = version.settings.filter_below

    def examine(self, X: object, concentration: object = None, *, top_k: int = 1, **where: Any) -> Examination:
        """Read probes, in a ``gallery`` of their own where one is given."""
        moment = self._version.moment
        if where.get("gallery") is not None:  # which is not turned as the rows of a protected gallery are
            moment = Moment(moment.settings, moment.state, moment.cell)
        seen = moment.examine(X, concentration, top_k=top_k, **where)
        return replace(seen, calibration_fingerprints=self._learned_from)

    def certify(self, certificate: RiskCertificate, examination: Examination) -> None:
        """The controller keeps the certificate."""


def certified(
    version: GalleryVersion,
    learned_from: Fingerprints | None,
    X: object,
    y: object,
    concentration: object = None,
    *,
    gallery: Gallery | tuple[object, ...] | None = None,
    subject: object = None,
    **wanted: Any,
) -> State:
    """The state that a version's calibration gives once a risk is certified on development probes.

    ``learned_from`` are the fingerprints of the probes it was calibrated on, where they are known; ``wanted`` is what
    :class:`holue.recognition.risk.controller.RiskController` takes.
    """
    calibration: StoredCalibration | None = version.calibrated
    if calibration is None or version.gallery is None:
        raise CalibrationDataError("a risk is certified for a calibration; calibrate first")
    controller = RiskController(**wanted)
    controller.fit(_Certifiable(version, learned_from), X, y, concentration, gallery=gallery, subject=subject)
    learned = {**calibration.learned, "certificate": controller.certificate_}
    return State(version.gallery, calibration.entry.model, **learned)
