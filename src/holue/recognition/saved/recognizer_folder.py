"""The saved recogniser: which of its parts go into which file of the artifact, and back."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact import read_artifact, write_artifact
from holue.errors import CorruptArtifactError
from holue.recognition.calibration.fallback import Fallback, usable_hold
from holue.recognition.calibration.recognised import Recognised
from holue.recognition.model.class_model import Prior
from holue.recognition.model.fpir_interval import FpirInterval
from holue.recognition.model.operating_point import Hold, OperatingPoint
from holue.recognition.model.stranger_tail import StrangerTail
from holue.recognition.quality import SCORES, QualityScore
from holue.recognition.quality.probability_model import ProbabilityModel
from holue.recognition.risk.certificate import RiskCertificate
from holue.recognition.risk.conformal import ConformalScores
from holue.recognition.saved.values import (
    check_certificate,
    check_learned,
    check_point,
    check_recognised,
    check_scores,
    check_size_of,
    checked_gallery,
)
from holue.recognition.settings import SETTINGS, Settings
from holue.recognition.state.state import State

KIND = "recognizer"
QUALITY = "quality_"
PROBABILITY = "probability_"
CONFORMAL = "conformal_"
LEARNED = ("quality_levels", "calibration_fingerprints")
PAIRS = ("enrolled_twice", "look_alikes")
MALFORMED = (KeyError, TypeError, ValueError, OverflowError, IndexError, AttributeError)
"""What reading something that is not what was written can raise."""


def write_recognizer(settings: Settings, state: State, directory: str | os.PathLike[str]) -> None:
    """Write a fitted recogniser; what it has not learned yet is left out."""
    gallery = state.gallery
    learned, arrays = learned_parts(state)
    content = {
        "parameters": plain_settings(settings),
        "gallery_version": gallery.version,
        "next_number": gallery.next_number,
        "embedding_model": state.embedding_model,
        **learned,
    }
    arrays |= {"subjects": gallery.subjects, "directions": gallery.directions}
    if gallery.numbers[-1] != len(gallery) - 1:  # else they are 0, 1, … as in earlier saves
        arrays["numbers"] = gallery.numbers
    if (kappa := gallery.concentrations) is not None:
        arrays["concentrations"] = kappa
    write_artifact(directory, KIND, content, arrays)


def plain_settings(settings: Settings) -> dict[str, Any]:
    """Settings as JSON can hold them."""
    parameters = {name: getattr(settings, name) for name in SETTINGS}
    parameters = {k: v.item() if isinstance(v, np.generic) else v for k, v in parameters.items()}
    if not isinstance(settings.random_state, int | np.integer | None):
        parameters["random_state"] = None  # a generator is spent once used; a seed is all that can be kept
    return parameters


def learned_parts(state: State) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """All that a state has learned beside its gallery: as JSON, and as arrays by name."""
    point, quality, certificate = state.operating_point, state.quality, state.certificate
    content = {
        "operating_point": None if point is None else asdict(point),
        "method": state.method,
        "quality": None if quality is None else _key(quality),
        "fallbacks": [asdict(fallback) for fallback in state.fallbacks],
        "certificate": None if certificate is None else certificate.to_dict(),
        "recognised": None if state.recognised is None else asdict(state.recognised),
        **{name: [list(pair) for pair in getattr(state, name)] for name in PAIRS},
    }
    arrays: dict[str, npt.NDArray[Any]] = {}
    if quality is not None:
        arrays |= {QUALITY + name: value for name, value in quality.state().items()}
    arrays |= {name: getattr(state, name) for name in LEARNED if getattr(state, name) is not None}
    if state.probability_model is not None:
        arrays |= {PROBABILITY + name: value for name, value in state.probability_model.state().items()}
    if state.conformal_scores is not None:
        arrays |= {CONFORMAL + name: value for name, value in state.conformal_scores.arrays().items()}
    return content, arrays


def read_recognizer(directory: str | os.PathLike[str]) -> tuple[Settings, State]:
    """The settings and the state of a recogniser, every part checked."""
    content, arrays = read_artifact(directory, KIND)
    try:
        settings = Settings(**content["parameters"])
        gallery = checked_gallery(arrays, content["gallery_version"], content.get("next_number", 0))
        known = learned_fields(content, arrays, settings)
        if known["operating_point"] is not None:
            check_size_of(known["operating_point"], gallery)
        if not isinstance(content.get("embedding_model"), str | None):
            raise TypeError(f"embedding_model is {content['embedding_model']!r}")
        return settings, State(gallery, content.get("embedding_model"), **known)
    except MALFORMED as error:
        raise CorruptArtifactError(f"{directory}: the manifest does not describe a recogniser ({error})") from error


def learned_fields(content: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], settings: Settings) -> dict[str, Any]:
    """What :func:`learned_parts` wrote, as the fields of a state, each checked; one of MALFORMED where something is wrong."""
    known: dict[str, Any] = {name: arrays.get(name) for name in LEARNED}
    known["operating_point"] = None
    if content["operating_point"] is not None:
        known["operating_point"] = _point(content["operating_point"], settings.hold)
        check_point(known["operating_point"])
    if not isinstance(content["quality"], bool | str | None):
        raise TypeError(f"quality is {content['quality']!r}")
    if not content["quality"] and _named(QUALITY, arrays):
        raise ValueError("there is a learned quality, and quality names none")
    if content["quality"]:
        # Earlier saves say only that there is a quality: it was always that of the method.
        key = settings.method if content["quality"] is True else content["quality"]
        known["method"] = content.get("method", settings.method)
        known["quality"] = SCORES[key]()
        known["quality"].restore(_named(QUALITY, arrays))
    known["fallbacks"] = tuple(Fallback(**fallback) for fallback in content.get("fallbacks", ()))
    known |= {name: tuple(_pair(pair) for pair in content.get(name, ())) for name in PAIRS}
    if content.get("recognised") is not None:
        known["recognised"] = Recognised(**content["recognised"])
        check_recognised(known["recognised"])
    if content.get("certificate") is not None:
        known["certificate"] = RiskCertificate.from_dict(content["certificate"])
        check_certificate(known["certificate"])
    if learned := _named(PROBABILITY, arrays):
        known["probability_model"] = ProbabilityModel()
        known["probability_model"].restore(learned)
    if scores := _named(CONFORMAL, arrays):
        known["conformal_scores"] = ConformalScores(**scores)
        check_scores(known["conformal_scores"])
    check_learned(known["quality_levels"], known["calibration_fingerprints"])
    return known


def _pair(plain: Any) -> tuple[Any, Any]:
    one, other = plain
    if not all(isinstance(name, str | int) for name in (one, other)):
        raise TypeError(f"{plain!r} is not a pair of subjects")
    return one, other


def _key(quality: QualityScore) -> str:
    return next(key for key, score in SCORES.items() if type(quality) is score)


def _point(plain: dict[str, Any], hold: Hold) -> OperatingPoint:
    tail = None if plain["tail"] is None else StrangerTail(**plain["tail"])
    origin = plain.get("calibrated")
    known = {**plain, "prior": Prior(**plain["prior"]), "tail": tail}
    if known.get("interval") is not None:
        known["interval"] = FpirInterval(**known["interval"])
    carried_from = known.pop("carried_from", None)
    known["calibrated"] = None if origin is None else _point(origin, hold)
    point = OperatingPoint(**known)
    if carried_from is None:
        return point
    # Earlier saves name only the size the point came from: carried back there, it is the calibrated one.
    calibrated = point.for_gallery(carried_from, usable_hold(hold, point))
    return replace(point, calibrated=replace(calibrated, calibrated=None))


def _named(prefix: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one part, under its own names; ``quality_levels`` is a part of its own."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix) and k not in LEARNED}
