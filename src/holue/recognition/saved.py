"""The saved recogniser: which of its parts go into which file of the artifact, and back."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from holue.errors import CorruptArtifactError
from holue.gallery.gallery import Gallery
from holue.recognition.artifact import read_artifact, write_artifact
from holue.recognition.certificate import RiskCertificate
from holue.recognition.conformal import ConformalScores
from holue.recognition.model import Prior
from holue.recognition.operating import OperatingPoint
from holue.recognition.quality import SCORES
from holue.recognition.settings import check_settings
from holue.recognition.stranger_tail import StrangerTail

if TYPE_CHECKING:
    from holue.recognition.recognizer import OpenSetRecognizer

KIND = "recognizer"
QUALITY = "quality_"
CONFORMAL = "conformal_"
LEARNED = ("quality_levels_", "calibration_fingerprints_")

R = TypeVar("R", bound="OpenSetRecognizer")


def write_recognizer(recognizer: OpenSetRecognizer, directory: str | os.PathLike[str]) -> None:
    """Write a fitted recogniser; what it has not learned yet is left out."""
    gallery = recognizer.gallery_
    point = getattr(recognizer, "operating_point_", None)
    quality = getattr(recognizer, "quality_", None)
    check_settings(recognizer)
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in recognizer.get_params().items()}
    parameters: dict[str, Any] = plain
    if not isinstance(recognizer.random_state, int | np.integer | None):
        parameters["random_state"] = None  # a generator is spent once used; a seed is all that can be kept
    certificate: RiskCertificate | None = getattr(recognizer, "certificate_", None)
    content = {
        "parameters": parameters,
        "gallery_version": gallery.version,
        "embedding_model": recognizer.embedding_model_,
        "operating_point": None if point is None else asdict(point),
        "quality": quality is not None,
        "certificate": None if certificate is None else certificate.to_dict(),
    }
    arrays: dict[str, npt.NDArray[Any]] = {"subjects": gallery.subjects, "directions": gallery.directions}
    if gallery.concentrations is not None:
        arrays["concentrations"] = gallery.concentrations
    if quality is not None:
        arrays |= {QUALITY + name: value for name, value in quality.state().items()}
    for name in LEARNED:
        if hasattr(recognizer, name):
            arrays[name.rstrip("_")] = getattr(recognizer, name)
    if hasattr(recognizer, "conformal_scores_"):
        arrays |= {CONFORMAL + name: value for name, value in recognizer.conformal_scores_.arrays().items()}
    write_artifact(directory, KIND, content, arrays)


def read_recognizer(cls: type[R], directory: str | os.PathLike[str]) -> R:
    """Read a recogniser back, every part checked."""
    content, arrays = read_artifact(directory, KIND)
    try:
        recognizer = cls(**content["parameters"])
        check_settings(recognizer)
        recognizer.gallery_ = _gallery(arrays, int(content["gallery_version"]))
        recognizer.embedding_model_ = content.get("embedding_model")
        recognizer._told = set()
        recognizer.n_features_in_ = recognizer.gallery_.dim
        if content["operating_point"] is not None:
            fields = dict(content["operating_point"])
            tail = None if fields["tail"] is None else StrangerTail(**fields["tail"])
            recognizer.operating_point_ = OperatingPoint(**{**fields, "prior": Prior(**fields["prior"]), "tail": tail})
        if content["quality"]:
            quality = SCORES[recognizer.method]()
            quality.restore({k.removeprefix(QUALITY): v for k, v in arrays.items() if k.startswith(QUALITY)})
            recognizer.quality_ = quality
        if content.get("certificate") is not None:
            recognizer.certificate_ = RiskCertificate.from_dict(content["certificate"])
        for name in LEARNED:
            if name.rstrip("_") in arrays:
                setattr(recognizer, name, arrays[name.rstrip("_")])
        scores = {k.removeprefix(CONFORMAL): v for k, v in arrays.items() if k.startswith(CONFORMAL)}
        if scores:
            recognizer.conformal_scores_ = ConformalScores(**scores)
    except (KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise CorruptArtifactError(f"{directory}: the manifest does not describe a recogniser ({error})") from error
    return recognizer


def _gallery(arrays: dict[str, npt.NDArray[Any]], version: int) -> Gallery:
    subjects, directions, kappa = arrays["subjects"], arrays["directions"], arrays.get("concentrations")
    if (
        directions.ndim != 2
        or subjects.shape != directions.shape[:1]
        or (kappa is not None and kappa.shape != subjects.shape)
    ):
        raise IndexError(f"{subjects.shape} subjects for directions of shape {directions.shape}")
    return Gallery(subjects, (directions,), kappa, version)
