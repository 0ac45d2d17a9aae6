"""The saved recogniser: which of its parts go into which file of the artifact, and back."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from holue.artifact import read_artifact, write_artifact
from holue.errors import CorruptArtifactError
from holue.gallery.gallery import Gallery
from holue.recognition.model.class_model import Prior
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.model.stranger_tail import StrangerTail
from holue.recognition.quality import SCORES
from holue.recognition.quality.probability_model import ProbabilityModel
from holue.recognition.risk.certificate import RiskCertificate
from holue.recognition.risk.conformal import ConformalScores
from holue.recognition.settings import check_settings
from holue.recognition.state import Knowledge, knowledge_of

if TYPE_CHECKING:
    from holue.recognition.recognizer import OpenSetRecognizer

KIND = "recognizer"
QUALITY = "quality_"
PROBABILITY = "probability_"
CONFORMAL = "conformal_"
LEARNED = ("quality_levels", "calibration_fingerprints")

R = TypeVar("R", bound="OpenSetRecognizer")


def write_recognizer(recognizer: OpenSetRecognizer, directory: str | os.PathLike[str]) -> None:
    """Write a fitted recogniser; what it has not learned yet is left out."""
    now = knowledge_of(recognizer)
    gallery, point, quality, certificate = now.gallery, now.operating_point, now.quality, now.certificate
    check_settings(recognizer)
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in recognizer.get_params().items()}
    parameters: dict[str, Any] = plain
    if not isinstance(recognizer.random_state, int | np.integer | None):
        parameters["random_state"] = None  # a generator is spent once used; a seed is all that can be kept
    content = {
        "parameters": parameters,
        "gallery_version": gallery.version,
        "embedding_model": now.embedding_model,
        "operating_point": None if point is None else asdict(point),
        "quality": quality is not None,
        "certificate": None if certificate is None else certificate.to_dict(),
    }
    arrays: dict[str, npt.NDArray[Any]] = {"subjects": gallery.subjects, "directions": gallery.directions}
    if gallery.concentrations is not None:
        arrays["concentrations"] = gallery.concentrations
    if quality is not None:
        arrays |= {QUALITY + name: value for name, value in quality.state().items()}
    arrays |= {name: getattr(now, name) for name in LEARNED if getattr(now, name) is not None}
    if now.probability_model is not None:
        arrays |= {PROBABILITY + name: value for name, value in now.probability_model.state().items()}
    if now.conformal_scores is not None:
        arrays |= {CONFORMAL + name: value for name, value in now.conformal_scores.arrays().items()}
    write_artifact(directory, KIND, content, arrays)


def read_recognizer(cls: type[R], directory: str | os.PathLike[str]) -> R:
    """Read a recogniser back, every part checked."""
    content, arrays = read_artifact(directory, KIND)
    try:
        recognizer = cls(**content["parameters"])
        check_settings(recognizer)
        known: dict[str, Any] = {name: arrays.get(name) for name in LEARNED}
        if content["operating_point"] is not None:
            fields = dict(content["operating_point"])
            tail = None if fields["tail"] is None else StrangerTail(**fields["tail"])
            known["operating_point"] = OperatingPoint(**{**fields, "prior": Prior(**fields["prior"]), "tail": tail})
        if content["quality"]:
            known["quality"] = SCORES[recognizer.method]()
            known["quality"].restore(_named(QUALITY, arrays))
        if content.get("certificate") is not None:
            known["certificate"] = RiskCertificate.from_dict(content["certificate"])
        if learned := _named(PROBABILITY, arrays):
            known["probability_model"] = ProbabilityModel()
            known["probability_model"].restore(learned)
        if scores := _named(CONFORMAL, arrays):
            known["conformal_scores"] = ConformalScores(**scores)
        gallery = _gallery(arrays, int(content["gallery_version"]))
        recognizer._knowledge = Knowledge(gallery, content.get("embedding_model"), **known)
    except (KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise CorruptArtifactError(f"{directory}: the manifest does not describe a recogniser ({error})") from error
    return recognizer


def _named(prefix: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of one part, under its own names; ``quality_levels`` is a part of its own."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix) and k not in LEARNED}


def _gallery(arrays: dict[str, npt.NDArray[Any]], version: int) -> Gallery:
    subjects, directions, kappa = arrays["subjects"], arrays["directions"], arrays.get("concentrations")
    if (
        directions.ndim != 2
        or subjects.shape != directions.shape[:1]
        or (kappa is not None and kappa.shape != subjects.shape)
    ):
        raise IndexError(f"{subjects.shape} subjects for directions of shape {directions.shape}")
    return Gallery(subjects, (directions,), kappa, version)
