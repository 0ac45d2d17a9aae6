"""Embedder: images, photographs or recordings to embeddings, within limits on what a file may unpack to."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from holue.embedding.faces.choice import as_choice
from holue.embedding.faces.detector import FaceDetector
from holue.embedding.faces.photographs import FoundFace, find_faces, template_size
from holue.embedding.heads.apply import load_head
from holue.embedding.inputs.image_file import FORMATS, pillow
from holue.embedding.inputs.samples import Sample
from holue.embedding.inputs.speech import SpeechInput
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.recordings.recordings import SpeechWindow, find_speech
from holue.embedding.recordings.speech_detector import SpeechDetector
from holue.errors import InvalidFileError, InvalidInputError, InvalidParameterError, MissingDependencyError
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.service.settings import EmbedderSettings, LimitSettings

Predict = Callable[[EmbeddingFile], Float64Array]
"""The concentration of each sample of a file."""
EVERY_FACE, ONE_FACE = "all", "one"
"""Which faces of a photograph are meant, as in ``holue embed --which``."""


@dataclass(frozen=True)
class SentFile:
    """A file, the name it has in messages, and which of the faces in it are meant where it is a photograph.

    Where ``which`` is not ``all``, something must be found in it: a face, or speech.
    """

    name: str
    content: bytes
    which: str | int = EVERY_FACE


@dataclass(frozen=True, eq=False)
class Embedded:
    """Directions (n, d), concentrations (n,) where the model predicts them, and the place of the file each row comes from.

    Where faces were looked for, ``faces`` has one for each row; where speech was looked for, ``windows`` has one for each.
    ``without`` are the places of the files in which nothing was found.
    """

    rows: FloatArray
    concentration: Float64Array | None
    file: tuple[int, ...]
    faces: tuple[FoundFace, ...] | None = None
    windows: tuple[SpeechWindow, ...] | None = None
    without: tuple[int, ...] = ()


class NoFaceError(InvalidInputError):
    """A photograph in which no face was found."""


class NoSpeechError(InvalidInputError):
    """A recording in which no speech was found."""


class Embedder(Protocol):
    """What turns files into embeddings."""

    @property
    def model(self) -> str:
        """The fingerprint of the model, which galleries are created for."""

    @property
    def kind(self) -> str:
        """``image`` or ``speech``."""

    @property
    def finds_faces(self) -> bool:
        """Whether images are whole photographs, in which faces are looked for."""

    def embed(self, files: Sequence[SentFile]) -> Embedded:
        """The embeddings of files: one of each, of each face that is meant in a photograph, or of each window of speech."""


class FileEmbedder:
    """An ONNX recogniser with an optional head and an optional detector; one file after the other, one request at a time."""

    def __init__(
        self,
        embedder: OnnxEmbedder,
        limits: LimitSettings,
        concentration: Predict | None = None,
        detector: FaceDetector | SpeechDetector | None = None,
    ) -> None:
        self._embedder, self._limits, self._concentration = embedder, limits, concentration
        self._detector, self._size = detector, template_size(embedder) if isinstance(detector, FaceDetector) else 0
        self._lock = threading.Lock()  # a second run at once would only take cores from scans

    @classmethod
    def open(cls, settings: EmbedderSettings, limits: LimitSettings) -> FileEmbedder:
        """As the settings say; a missing or unfit model is found at once, not at the first request."""
        embedder = OnnxEmbedder.open(settings.model)
        detector = None if settings.detect is None else _detector(settings.detect, embedder)
        if settings.head is None:
            return cls(embedder, limits, None, detector)
        head = load_head(settings.head)
        if head.output != "concentration":
            raise InvalidParameterError(
                f"embedder.head: {settings.head} predicts {head.output!r}; the service reads heads that predict a concentration"
            )
        return cls(embedder, limits, lambda file: head.predict_file(file).astype(np.float64), detector)

    @property
    def model(self) -> str:
        """The fingerprint of the model."""
        return self._embedder.fingerprint

    @property
    def kind(self) -> str:
        """``image`` or ``speech``."""
        return self._embedder.specification.model_input.kind

    @property
    def finds_faces(self) -> bool:
        """Whether a face detector is configured."""
        return isinstance(self._detector, FaceDetector)

    def embed(self, files: Sequence[SentFile]) -> Embedded:
        """Directions and concentrations of files; each is measured before it is unpacked."""
        check = _check_image if self.kind == "image" else _check_recording
        for file in files:
            check(file.content, file.name, self._limits)
        with self._lock:
            if isinstance(self._detector, FaceDetector):
                return self._faces(files, self._detector)
            if self._detector is not None:
                return self._speech(files, self._detector)
            rows, kappa = self._run([Sample(file.name, "", file.name, lambda f=file: f.content) for file in files])  # type: ignore[misc]
        return Embedded(rows, kappa, tuple(range(len(files))))

    def _faces(self, files: Sequence[SentFile], detector: FaceDetector) -> Embedded:
        """The faces that are meant, photograph by photograph: a photograph is unpacked only while it is searched."""
        found: list[FoundFace] = []
        place: list[int] = []
        without: list[int] = []
        for number, file in enumerate(files):
            faces = _found(file, detector, self._size)
            found += faces
            place += [number] * len(faces)
            if not faces:
                without.append(number)
            if len(found) > self._limits.probes:
                raise InvalidInputError(
                    f"the photographs hold more than {self._limits.probes} faces; send fewer at once, or raise limits.probes"
                )
        if not found:
            raise NoFaceError(
                f"{files[0].name}: no face was found; send a photograph that shows one of at least 25 pixels, upright"
            )
        names = [files[number].name for number in place]
        rows, kappa = self._run(
            [Sample(name, "", name, lambda f=face: f.crop) for name, face in zip(names, found)]  # type: ignore[misc]
        )
        return Embedded(rows, kappa, tuple(place), faces=tuple(found), without=tuple(without))

    def _speech(self, files: Sequence[SentFile], detector: SpeechDetector) -> Embedded:
        """The speech of each recording in windows, as ``holue embed`` cuts it; windows of one are samples of one probe."""
        model_input = self._embedder.specification.model_input
        assert isinstance(model_input, SpeechInput)
        found: list[SpeechWindow] = []
        place: list[int] = []
        without: list[int] = []
        for number, file in enumerate(files):
            windows = find_speech(file.content, detector, model_input, origin=file.name)
            if not windows and file.which != EVERY_FACE:
                raise _no_speech(file)
            found += windows
            place += [number] * len(windows)
            if not windows:
                without.append(number)
        if not found:
            raise _no_speech(files[0])
        names = [f"{files[n].name}, {one.start:.1f} to {one.end:.1f} s" for n, one in zip(place, found)]
        rows, kappa = self._run(
            [Sample(name, "", name, lambda w=one: w.waveform) for name, one in zip(names, found)]  # type: ignore[misc]
        )
        return Embedded(rows, kappa, tuple(place), windows=tuple(found), without=tuple(without))

    def _run(self, samples: Sequence[Sample]) -> tuple[FloatArray, Float64Array | None]:
        file = self._embedder.embed(samples)
        return file.directions, None if self._concentration is None else self._concentration(file)


def _detector(model: str, embedder: OnnxEmbedder) -> FaceDetector | SpeechDetector:
    """A face detector for a model of images, a speech detector for a model of speech."""
    reads_speech = isinstance(embedder.specification.model_input, SpeechInput)
    return SpeechDetector.open(model) if reads_speech else FaceDetector.open(model)


def _no_speech(file: SentFile) -> NoSpeechError:
    return NoSpeechError(f"{file.name}: no speech was found; send a recording in which somebody speaks for 1.2 seconds")


def _found(file: SentFile, detector: FaceDetector, size: int) -> list[FoundFace]:
    found = find_faces(file.content, detector, which=as_choice(file.which), size=size, origin=file.name)
    if not found and file.which != EVERY_FACE:
        raise NoFaceError(
            f"{file.name}: no face was found; send a photograph that shows one of at least 25 pixels, upright"
        )
    return found


def _check_image(content: bytes, name: str, limits: LimitSettings) -> None:
    Image = pillow()
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:  # reads the header alone
            width, height = image.size
    except Exception as error:  # Pillow's readers raise whatever their format raises
        raise InvalidFileError(f"{name}: not a readable image ({type(error).__name__}); send PNG or JPEG") from None
    if width * height > limits.pixels:
        raise InvalidFileError(
            f"{name}: the image has {width}×{height} pixels, at most {limits.pixels} are read; send a smaller one"
        )


def _check_recording(content: bytes, name: str, limits: LimitSettings) -> None:
    try:
        import soundfile
    except ImportError as error:
        raise MissingDependencyError("soundfile", "embed") from error
    try:
        info = soundfile.info(io.BytesIO(content))
        seconds = info.frames / info.samplerate
    except Exception as error:
        raise InvalidFileError(f"{name}: not a readable recording ({type(error).__name__}); send WAV or FLAC") from None
    if not seconds <= limits.audio_seconds:
        raise InvalidFileError(
            f"{name}: the recording lasts {seconds:.0f} s, at most {limits.audio_seconds:g} are read; send a shorter one"
        )
