"""Embedder: images or recordings to embeddings, within limits on what a file may unpack to."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from holue.embedding.heads.apply import load_head
from holue.embedding.inputs.samples import Sample
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidFileError, InvalidParameterError, MissingDependencyError
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.service.settings import EmbedderSettings, LimitSettings

Predict = Callable[[EmbeddingFile], Float64Array]
"""The concentration of each sample of a file."""


class Embedder(Protocol):
    """What turns files into embeddings."""

    @property
    def model(self) -> str:
        """The fingerprint of the model, which galleries are created for."""

    @property
    def kind(self) -> str:
        """``image`` or ``speech``."""

    def embed(self, contents: Sequence[bytes]) -> tuple[FloatArray, Float64Array | None]:
        """Directions (n, d) and, where the model predicts them, concentrations (n,)."""


class FileEmbedder:
    """An ONNX recogniser with an optional head; one file after the other, and one request at a time."""

    def __init__(self, embedder: OnnxEmbedder, limits: LimitSettings, concentration: Predict | None = None) -> None:
        self._embedder, self._limits, self._concentration = embedder, limits, concentration
        self._lock = threading.Lock()  # a second run at once would only take cores from scans

    @classmethod
    def open(cls, settings: EmbedderSettings, limits: LimitSettings) -> FileEmbedder:
        """As the settings say; a missing or unfit model is found at once, not at the first request."""
        embedder = OnnxEmbedder.open(settings.model)
        if settings.head is None:
            return cls(embedder, limits)
        head = load_head(settings.head)
        if head.output != "concentration":
            raise InvalidParameterError(
                f"embedder.head: {settings.head} predicts {head.output!r}; the service reads heads that predict a concentration"
            )
        return cls(embedder, limits, lambda file: head.predict_file(file).astype(np.float64))

    @property
    def model(self) -> str:
        """The fingerprint of the model."""
        return self._embedder.fingerprint

    @property
    def kind(self) -> str:
        """``image`` or ``speech``."""
        return self._embedder.specification.model_input.kind

    def embed(self, contents: Sequence[bytes]) -> tuple[FloatArray, Float64Array | None]:
        """Directions and concentrations of files; each is measured before it is unpacked."""
        check = _check_image if self.kind == "image" else _check_recording
        for place, content in enumerate(contents):
            check(content, f"file {place}", self._limits)
        samples = [_sample(place, content) for place, content in enumerate(contents)]
        with self._lock:
            file = self._embedder.embed(samples)
            kappa = None if self._concentration is None else self._concentration(file)
        return file.directions, kappa


def _sample(place: int, content: bytes) -> Sample:
    return Sample(str(place), "", f"file {place}", lambda: content)


def _check_image(content: bytes, name: str, limits: LimitSettings) -> None:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError("pillow", "embed") from error
    try:
        with Image.open(io.BytesIO(content)) as image:  # reads the header alone
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
