"""Faces: what a whole photograph costs from its file to the embedding, and how well the faces agree with crops aligned before."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.datasets.directory import data_directory
from holue.embedding.faces.alignment import align
from holue.embedding.faces.choice import chosen
from holue.embedding.faces.detector import FaceDetector
from holue.embedding.faces.measures import measure
from holue.embedding.inputs.image_file import decode_image, pillow
from holue.embedding.inputs.samples import Sample, find_samples
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import HolueError

LARGE = (4000, 3000)
"""Width and height of a photograph as telephones take it."""
LARGE_PHOTOGRAPHS = 20
STEPS = ("decode", "find", "align", "embed")


def face_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """Photographs as they are, and enlarged ones; what is missing is named in ``skipped``."""
    result["faces"] = {}
    if sizes.photographs == 0:
        return
    folder = data_directory() / "lfw"
    try:
        if not (folder / "originals.zip").is_file():
            raise FileNotFoundError(f"there are no photographs at {folder / 'originals.zip'}")
        detector, embedder = FaceDetector.open(), OnnxEmbedder.open("arcface")
        photographs = find_samples([folder / "originals.zip"], embedder.specification.model_input)[: sizes.photographs]
    except (HolueError, FileNotFoundError) as error:
        result["faces"] = {"skipped": str(error)}
        return
    result["faces"] = {"rows": []}

    def small() -> None:
        row = _timed(photographs, detector, embedder, folder / "arcface_mbf.npz")
        result["faces"]["rows"].append({"photographs": "as they are"} | row)

    def large() -> None:
        enlarged = [_enlarged(sample) for sample in photographs[:LARGE_PHOTOGRAPHS]]
        result["faces"]["rows"].append({"photographs": "enlarged"} | _timed(enlarged, detector, embedder, None))

    yield f"faces: {len(photographs)} photographs", small
    yield f"faces: photographs of {LARGE[0]} × {LARGE[1]} pixels", large


def _timed(photographs: list[Sample], detector: FaceDetector, embedder: OnnxEmbedder, reference: Path | None) -> Row:
    """One photograph after the other, on one thread: the medians of all steps, and the cosines with the reference."""
    seconds: dict[str, list[float]] = {name: [] for name in STEPS}
    embeddings: list[EmbeddingFile] = []
    faces_in: list[int] = []
    pixels = decode_image(bytes(photographs[0].read()), photographs[0].origin)
    detector.find(pixels)  # the first call reserves memory for this size
    for photograph in photographs:
        content, marks = bytes(photograph.read()), [time.perf_counter()]
        pixels = decode_image(content, photograph.origin)
        marks.append(time.perf_counter())
        faces = detector.find(pixels)
        marks.append(time.perf_counter())
        faces_in.append(len(faces))
        if not faces:
            continue
        face = faces[chosen(faces, "central", pixels.shape[:2], photograph.origin)[0]]
        aligned = align(pixels, face.points, 112, photograph.origin)
        measure(face, aligned)
        marks.append(time.perf_counter())
        embeddings.append(embedder.embed_arrays([aligned.crop], sample_id=[photograph.sample_id]))
        marks.append(time.perf_counter())
        for name, taken in zip(STEPS, np.diff(marks), strict=True):
            seconds[name].append(float(taken))
    row: Row = {"count": len(photographs), "width": int(pixels.shape[1]), "height": int(pixels.shape[0])}
    row |= {"found": float(np.mean(np.array(faces_in) > 0)), "several": int(np.sum(np.array(faces_in) > 1))}
    row |= {f"{name}_ms": 1e3 * float(np.median(taken)) for name, taken in seconds.items()}
    row["total_ms"] = 1e3 * float(np.median(np.sum(list(seconds.values()), axis=0)))
    if reference is not None and reference.is_file():
        cosines = _cosines(embeddings, EmbeddingFile.load(reference))
        row |= {"cosine_median": float(np.median(cosines)), "cosine_p01": float(np.quantile(cosines, 0.01))}
    return row


def _cosines(files: list[EmbeddingFile], reference: EmbeddingFile) -> list[float]:
    place = {name: row for row, name in enumerate(reference.sample_id.tolist())}
    known, directions = [file for file in files if str(file.sample_id[0]) in place], reference.directions
    return [float(file.directions[0] @ directions[place[str(file.sample_id[0])]]) for file in known]


def _enlarged(sample: Sample) -> Sample:
    """The same photograph at the size of a telephone's, with its middle band cut out, as JPEG."""
    Image = pillow()
    image = Image.fromarray(decode_image(bytes(sample.read()), sample.origin))
    width, height = LARGE
    margin = (image.height - image.width * height / width) / 2
    stream = io.BytesIO()
    image.resize(LARGE, box=(0, margin, image.width, image.height - margin)).save(stream, "JPEG", quality=90)
    return Sample(sample.sample_id, sample.subject_id, sample.origin, stream.getvalue)
