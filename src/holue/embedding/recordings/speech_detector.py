"""SpeechDetector: Silero's model, which says how probable speech is in every 32 ms of a recording, run by onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedder import open_session
from holue.embedding.models.specification import models_directory
from holue.errors import InvalidFileError

SILERO = "silero"
"""The name of the model in the package silero-vad."""
FILE = "silero_vad.onnx"
SAMPLE_RATE = 16_000
FRAME, CONTEXT = 512, 64
"""Samples in a frame, and samples of the frame before that the model reads again."""
STATE = (2, 1, 128)


@dataclass(frozen=True)
class SpeechDetector:
    """A voice activity model in an ONNX file, of Silero's version 5 or 6. It can be used by several threads at once."""

    path: Path

    @classmethod
    def open(cls, model: str | Path = SILERO) -> SpeechDetector:
        """The detector in an ONNX file; ``silero`` is ``silero_vad.onnx`` in ``HOLUE_MODELS``, else the package silero-vad's."""
        path = _silero() if str(model) == SILERO else Path(model)
        if path is None or not path.is_file():
            raise InvalidFileError(
                f"{path or FILE}: no such speech detector; run: pip install --no-deps silero-vad (its model is enough, its code "
                "would need torch), or name its ONNX file"
            )
        detector = cls(path)
        names = [entry.name for entry in detector._session.get_inputs()]
        if sorted(names) != ["input", "sr", "state"]:
            raise InvalidFileError(
                f"{path}: not Silero's speech detector: its inputs are {', '.join(names)}, input, state and sr are needed"
            )
        return detector

    def probabilities(self, waveform: Float32Array) -> Float32Array:
        """P(speech) in each frame of 32 ms of a mono waveform at 16 kHz; what is left after the last whole frame is filled up."""
        count = -(-len(waveform) // FRAME)
        padded = np.zeros(CONTEXT + count * FRAME, dtype=np.float32)
        padded[CONTEXT : CONTEXT + len(waveform)] = waveform
        state, rate = np.zeros(STATE, np.float32), np.array(SAMPLE_RATE)
        found = np.empty(count, dtype=np.float32)
        for frame in range(count):
            start = frame * FRAME
            given = {"input": padded[None, start : start + CONTEXT + FRAME], "state": state, "sr": rate}
            probability, state = self._session.run(None, given)
            found[frame] = probability[0, 0]
        return found

    @cached_property
    def _session(self) -> Any:
        return open_session(self.path, threads=1)


def _silero() -> Path | None:
    path = models_directory() / FILE
    if path.is_file():
        return path
    # The package itself is not imported: it would import torch.
    spec = find_spec("silero_vad")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "data" / FILE
