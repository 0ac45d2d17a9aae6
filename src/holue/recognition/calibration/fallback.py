"""Fallback: a setting that the data could not support, what was used in its place, and why."""

from __future__ import annotations

from dataclasses import dataclass

from holue.recognition.model.operating_point import Hold, OperatingPoint

SIMPLER_METHOD = "galue"
"""The method in place of "holue-plus" where too few right answers are there to learn from: a formula, needing none."""


class FallbackWarning(UserWarning):
    """A setting could not be used with these validation probes; the message says what was used instead, and why."""


@dataclass(frozen=True)
class Fallback:
    """One setting, as asked for and as used.

    >>> print(Fallback("method", "holue-plus", "galue", "only 3 validation probes were rightly rejected"))
    method='galue' is used in place of 'holue-plus': only 3 validation probes were rightly rejected
    """

    setting: str
    asked: str
    used: str
    reason: str

    def __str__(self) -> str:
        return f"{self.setting}={self.used!r} is used in place of {self.asked!r}: {self.reason}"


def usable_hold(hold: Hold, point: OperatingPoint) -> Hold:
    """``hold``, or "model" where "fpir" is asked for and no strangers' scores say how the threshold should follow."""
    return "model" if hold == "fpir" and point.tail is None else hold


def hold_fallback(hold: Hold, point: OperatingPoint) -> Fallback | None:
    """Why another ``hold`` is used than was asked for, if one is."""
    used = usable_hold(hold, point)
    if used == hold:
        return None
    if point.target_fpir is None:
        reason = "threshold= was given, so no strangers' scores say how it should follow the gallery's size"
    else:
        reason = "the validation strangers' best scores are all alike and say nothing about other sizes of gallery"
    return Fallback("hold", hold, used, reason)
