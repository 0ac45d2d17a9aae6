"""Values: the rules that the numbers of a saved recogniser obey: an unchanged file can still be a wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Float64Array, as_concentrations, as_directions
from holue.gallery.gallery import Gallery
from holue.gallery.subjects import as_subjects
from holue.recognition.calibration.recognised import Recognised
from holue.recognition.checks import check_positive, check_share, check_size, check_threshold, is_number
from holue.recognition.model.decision_equation import threshold_from_odds
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.risk.certificate import RiskCertificate
from holue.recognition.risk.conformal import ConformalScores
from holue.recognition.risk.decisions import check_risk, check_unit

Arrays = Mapping[str, npt.NDArray[Any]]

AGREEMENT = 1e-6
"""How far a threshold may be from the one that its concentration and prior give: the rounding of the solver."""


def checked_gallery(arrays: Arrays, version: object, next_number: object) -> Gallery:
    """A gallery of unit vectors, each of another subject."""
    subjects, directions, kappa = arrays["subjects"], arrays["directions"], arrays.get("concentrations")
    if directions.dtype not in (np.float32, np.float64):
        raise InvalidParameterError(f"directions must be float32 or float64, got {directions.dtype}")
    as_directions(directions, field="directions")
    ids = as_subjects(subjects, len(directions), field="subjects")
    if len(np.unique(ids)) < len(ids):
        raise InvalidParameterError("subjects must be unique, and one occurs twice")
    if kappa is not None and kappa.shape != ids.shape:
        raise InvalidParameterError(f"{kappa.shape} concentrations for {len(ids)} subjects")
    numbers = arrays.get("numbers")
    if numbers is not None and (
        numbers.dtype != np.int64 or numbers.shape != ids.shape or numbers[0] < 0 or (np.diff(numbers) <= 0).any()
    ):
        raise InvalidParameterError(f"numbers must be {len(ids)} whole numbers that rise")
    gallery = Gallery.of(
        ids,
        directions,
        concentrations=as_concentrations(kappa, len(ids)),
        numbers=numbers,
        version=check_count("gallery_version", version, 1),
    )
    return replace(gallery, next_number=max(gallery.next_number, check_count("next_number", next_number, 0)))


def check_size_of(point: OperatingPoint, gallery: Gallery) -> None:
    """Refuse an operating point of another gallery's size."""
    if (point.dim, point.n_subjects) != (gallery.dim, len(gallery)):
        raise InvalidParameterError(
            f"the operating point is of {point.n_subjects} subjects in {point.dim} dimensions, the gallery of "
            f"{len(gallery)} in {gallery.dim}"
        )


def check_point(point: OperatingPoint) -> None:
    """Refuse an operating point out of range, or whose parts contradict each other."""
    _check_numbers(point)
    if point.calibrated is not None:
        _check_numbers(point.calibrated)
        if point.calibrated.dim != point.dim or point.calibrated.calibrated is not None:
            raise InvalidParameterError("calibrated is not the point that was calibrated")


def _check_numbers(point: OperatingPoint) -> None:
    check_size(point.dim, point.n_subjects)
    check_threshold(point.threshold)
    check_positive("concentration", point.concentration)
    check_number("log_odds", point.prior.log_odds)
    given = threshold_from_odds(point.dim, point.n_subjects, point.concentration, point.prior)
    if not abs(given - point.threshold) <= AGREEMENT:
        raise InvalidParameterError(
            f"threshold {point.threshold:.6g} is not that of the concentration and prior, {given:.6g}"
        )
    if point.solved not in ("concentration", "unknown_prior") or not isinstance(point.reason, str):
        raise InvalidParameterError(f"solved is {point.solved!r} for the reason {point.reason!r}")
    if point.target_fpir is not None:
        check_share("target_fpir", point.target_fpir)
    if point.achieved_fpir is not None:
        check_number("achieved_fpir", point.achieved_fpir, 0, 1)
    check_count("n_nonmated", point.n_nonmated, 0)
    if point.tail is not None:
        check_number("mean of the tail", point.tail.mean)
        check_positive("deviation of the tail", point.tail.deviation)
        check_count("people of the tail", point.tail.n_people, 0)
        if point.tail.error is not None:
            check_number("error of the tail", point.tail.error, 0)
    if point.fpir_confidence is not None:
        check_share("fpir_confidence", point.fpir_confidence)
    if (interval := point.interval) is not None:
        check_number("low", interval.low, 0, 1)
        check_number("high", interval.high, interval.low, 1)
        check_number("resolvable", interval.resolvable, 0, 1)
        check_share("confidence", interval.confidence)
        check_count("n_people", interval.n_people, 1)
        if not isinstance(interval.named, bool):
            raise InvalidParameterError(f"named must be true or false, got {interval.named!r}")


def check_certificate(given: RiskCertificate) -> None:
    """Refuse a certificate whose counts or levels cannot be."""
    check_risk(given.risk)
    check_unit(given.unit)
    check_share("target_level", given.target_level)
    if given.confidence_level is not None:
        check_share("confidence_level", given.confidence_level)
    if not isinstance(given.test, str):
        raise InvalidParameterError(f"test must be a name, got {given.test!r}")
    if not is_number(given.filter_below) or np.isnan(given.filter_below) or given.filter_below == np.inf:
        raise InvalidParameterError(f"filter_below must be a quality, got {given.filter_below!r}")
    check_number("filtered_share", given.filtered_share, 0, 1)
    check_count("n_gallery", given.n_gallery, 1)
    check_count("n_units", given.n_units, 0)
    counts = [check_count(name, getattr(given, name), 0) for name in ("n_wrong", "n_decided", "n_probes")]
    if counts != sorted(counts):
        raise InvalidParameterError(f"n_wrong, n_decided and n_probes must not fall, got {counts}")


def check_recognised(given: Recognised) -> None:
    """Refuse counts and rates that cannot be."""
    counts = [check_count(name, getattr(given, name), 0) for name in ("accepted", "samples")]
    people = check_count("people", given.people, 1)
    if counts != sorted(counts) or people > given.samples:
        raise InvalidParameterError(f"{given.accepted} of {given.samples} samples of {people} people cannot be")
    for name in ("rate", "low", "high"):
        check_number(name, getattr(given, name), 0, 1)


def check_scores(scores: ConformalScores) -> None:
    """Refuse log-probabilities that are none, or that have no person."""
    for name in ("mated", "unknown"):
        log_p, person = getattr(scores, name), getattr(scores, f"{name}_person")
        check_column(name, log_p)
        if (log_p > AGREEMENT).any():
            raise InvalidParameterError(f"{name} must hold logarithms of probabilities, got {float(log_p.max())}")
        if person.dtype != np.int64 or person.shape != log_p.shape:
            raise InvalidParameterError(f"{name}_person must number the person of each of {len(log_p)} probes")


def check_learned(levels: Float64Array | None, fingerprints: npt.NDArray[Any] | None) -> None:
    """Refuse quality levels that fall, and fingerprints that are none."""
    if levels is not None:
        check_column("quality_levels", levels)
        if (np.diff(levels) < 0).any():
            raise InvalidParameterError("quality_levels must not fall")
    if fingerprints is not None and (fingerprints.dtype != np.uint64 or fingerprints.ndim != 1):
        raise InvalidParameterError(
            f"calibration_fingerprints are {fingerprints.dtype} of {fingerprints.ndim} dimensions"
        )


def check_column(name: str, values: npt.NDArray[Any]) -> None:
    """Refuse anything but a column of finite float64."""
    if values.dtype != np.float64 or values.ndim != 1 or not np.isfinite(values).all():
        raise InvalidParameterError(
            f"{name} must be a column of finite float64, got {values.dtype} of shape {values.shape}"
        )


def check_number(name: str, value: object, low: float = -np.inf, high: float = np.inf) -> None:
    """Refuse anything but a finite number from ``low`` to ``high``."""
    if not is_number(value) or not np.isfinite(value) or not low <= value <= high:  # type: ignore[call-overload,operator]
        raise InvalidParameterError(f"{name} must be a number from {low} to {high}, got {value!r}")


def check_count(name: str, value: object, least: int) -> int:
    """``value`` when it is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidParameterError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value
