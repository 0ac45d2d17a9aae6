"""Photographs: whole photographs → the embeddings of the faces in them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.embedding.faces.alignment import align
from holue.embedding.faces.choice import as_choice, chosen
from holue.embedding.faces.detector import FaceDetector
from holue.embedding.faces.face import Face
from holue.embedding.faces.measures import MEASURES, PREFIX, measure
from holue.embedding.inputs.image_file import decode_image
from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.samples import Content, Sample
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile, joined
from holue.errors import InvalidInputError, InvalidParameterError
from holue.progress import Progress

logger = logging.getLogger(__name__)

BOX = "box"
MEDIUM = "media_id"


@dataclass(frozen=True, eq=False)
class FoundFace:
    """A face of a photograph with its number from the left, its aligned crop, and its measures by name."""

    face: Face
    number: int
    crop: npt.NDArray[np.uint8]
    measures: dict[str, float]


def find_faces(
    content: Content,
    detector: FaceDetector,
    *,
    which: str | int = "all",
    size: int = 112,
    origin: str = "the photograph",
) -> list[FoundFace]:
    """The wanted faces of a photograph, given as the bytes of its file or as upright RGB pixels; none where there is no face."""
    pixels = decode_image(content, origin) if isinstance(content, bytes) else _as_pixels(content, origin)
    faces = detector.find(pixels)
    if not faces:
        return []
    found = []
    for place in chosen(faces, as_choice(which), pixels.shape[:2], origin):
        aligned = align(pixels, faces[place].points, size, origin)
        found.append(FoundFace(faces[place], place + 1, aligned.crop, measure(faces[place], aligned)))
    return found


def embed_photographs(
    embedder: OnnxEmbedder,
    detector: FaceDetector,
    photographs: Sequence[Sample],
    *,
    which: str | int = "one",
    progress: Progress | None = None,
) -> EmbeddingFile:
    """Find, align and embed the faces of photographs; those without a face are named in ``skipped``.

    The file has the columns ``media_id`` (the photograph), ``box`` (x, y, width, height) and ``measure_…``. With
    ``which="all"`` a sample is named after its photograph and its number in it, and its subject is "": the name of a folder
    cannot say whose faces these are.
    """
    size, which = template_size(embedder), as_choice(which)
    files: list[EmbeddingFile] = []
    skipped: list[str] = []
    for start in range(0, len(photographs), embedder.chunk_size):
        chunk = photographs[start : start + embedder.chunk_size]
        samples: list[Sample] = []
        rows: list[tuple[str, FoundFace]] = []
        for photograph in chunk:
            found = find_faces(photograph.read(), detector, which=which, size=size, origin=photograph.origin)
            if not found:
                skipped.append(photograph.sample_id)
                logger.warning("%s: no face was found", photograph.origin)
            samples += _samples(photograph, found, which)
            rows += [(photograph.sample_id, face) for face in found]
        if samples:
            files.append(replace(embedder.embed(samples), columns=_columns(rows)))
        if progress is not None:
            progress(start + len(chunk), len(photographs), chunk[-1].sample_id)
    if not files:
        raise InvalidInputError(
            f"no face was found in {len(photographs)} photographs, such as {photographs[0].origin}; check that they show "
            "faces of at least 25 pixels, upright"
        )
    return replace(joined(files), skipped=tuple(skipped))


def _samples(photograph: Sample, found: Sequence[FoundFace], which: str | int) -> Iterator[Sample]:
    for number, face in enumerate(found, start=1):
        load = partial(np.asarray, face.crop)
        if which == "all":
            name = f"{photograph.sample_id}#{number}"
            yield Sample(name, "", f"{photograph.origin}, face {number}", load)
        else:
            yield Sample(photograph.sample_id, photograph.subject_id, photograph.origin, load)


def _columns(rows: Sequence[tuple[str, FoundFace]]) -> dict[str, npt.NDArray[Any]]:
    columns: dict[str, npt.NDArray[Any]] = {
        MEDIUM: np.array([name for name, _ in rows]),
        BOX: np.array([found.face.box for _, found in rows]),
    }
    for name in MEASURES:
        columns[PREFIX + name] = np.array([found.measures[name] for _, found in rows])
    return columns


def template_size(embedder: OnnxEmbedder) -> int:
    """The side in pixels of the aligned faces that a model reads; an error where it reads something else."""
    model_input = embedder.specification.model_input
    if not isinstance(model_input, ImageInput) or model_input.height != model_input.width:
        raise InvalidParameterError(
            f"{embedder.specification.name}: faces are found for models that read square images aligned to the ArcFace template, "
            f"this one reads {model_input.kind} of shape {model_input.shape}; leave the detector out"
        )
    return model_input.height


def _as_pixels(content: npt.NDArray[Any], origin: str) -> npt.NDArray[np.uint8]:
    if content.dtype != np.uint8 or content.ndim != 3 or content.shape[2] != 3 or 0 in content.shape:
        raise InvalidInputError(
            f"{origin}: a photograph must be RGB bytes (H, W, 3), got {content.dtype} {content.shape}; convert it"
        )
    return content
