"""ModelInput: what a recogniser reads, and how a file becomes the array it is given."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import FloatArray

Float32Array = npt.NDArray[np.float32]
RawArray = FloatArray | npt.NDArray[np.uint8]
"""A decoded sample: an image (H, W) or (H, W, 3) of bytes, or a waveform (n,) of floats."""


class ModelInput(Protocol):
    """One kind of input. Images are in ``images.py``, speech is in ``speech.py``."""

    @property
    def name(self) -> str:
        """The name of the input in the ONNX graph."""

    @property
    def kind(self) -> str:
        """``image`` or ``speech``."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The file names, by their endings, that are read from folders and zips."""

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The shape of one prepared sample; None where it varies."""

    def decode(self, content: bytes, origin: str) -> RawArray:
        """The bytes of a file as an array; ``origin`` names the file in errors."""

    def prepare(self, raw: RawArray, origin: str) -> Float32Array:
        """A decoded sample as the model takes it, of :attr:`shape`."""

    def settings(self) -> dict[str, object]:
        """Every setting that changes the numbers, for the fingerprint of the model."""

    def table(self) -> dict[str, object]:
        """Every setting, as the ``[input]`` table of a specification holds it."""
