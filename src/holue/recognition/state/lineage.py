"""Lineage: which ``fit`` and which calibration something was learned from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from holue.errors import NotCalibratedError


@dataclass(frozen=True, eq=False)
class Lineage:
    """Two marks, compared by identity: enrolling and removing keep both, calibrating renews one, fitting renews both.

    >>> one = Lineage()
    >>> one.check_same(one)
    >>> one.check_same(one.recalibrated())
    Traceback (most recent call last):
    holue.errors.NotCalibratedError: the recogniser was calibrated again while ...
    """

    fit: object = field(default_factory=object)
    calibration: object = field(default_factory=object)

    def recalibrated(self) -> Lineage:
        """Of the same ``fit``, and of a calibration of its own."""
        return replace(self, calibration=object())

    def check_same(self, earlier: Lineage) -> None:
        """Refuse what was learned from ``earlier`` where a ``fit`` or a calibration came since."""
        if self.fit is not earlier.fit:
            raise NotCalibratedError(
                "the gallery was replaced by fit while the earlier one was being calibrated: calibrate again"
            )
        if self.calibration is not earlier.calibration:
            raise NotCalibratedError(
                "the recogniser was calibrated again while this was being learned from the calibration before, which it would "
                "not fit: nothing was changed; repeat the call if it should come after the newer calibration"
            )
