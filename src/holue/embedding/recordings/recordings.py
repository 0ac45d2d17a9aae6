"""Recordings: long recordings → the embeddings of the speech in them, several of each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.inputs.samples import Content, Sample
from holue.embedding.inputs.speech import SILENCE_PEAK, SpeechInput, resampled
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile, joined
from holue.embedding.recordings.speech_detector import FRAME, SAMPLE_RATE, SpeechDetector
from holue.embedding.recordings.speech_windows import speech_windows
from holue.errors import InvalidInputError, InvalidParameterError
from holue.progress import Progress

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class SpeechWindow:
    """Speech from ``start`` to ``end`` in seconds, its waveform, and the mean P(speech) in it."""

    start: float
    end: float
    waveform: Float32Array
    speech: float


def find_speech(
    content: Content, detector: SpeechDetector, model_input: SpeechInput, *, origin: str = "the recording"
) -> list[SpeechWindow]:
    """The windows of speech in a recording, given as the bytes of its file or as a waveform at the model's rate."""
    waveform = model_input.decode(content, origin) if isinstance(content, bytes) else content
    waveform = model_input.as_waveform(waveform, origin)
    rate = model_input.sample_rate
    probabilities = detector.probabilities(resampled(waveform, rate, SAMPLE_RATE))
    found = []
    for start, end in speech_windows(probabilities, len(waveform) / rate):
        part = waveform[round(start * rate) : round(end * rate)]
        frames = probabilities[int(start * SAMPLE_RATE / FRAME) : int(np.ceil(end * SAMPLE_RATE / FRAME))]
        if np.abs(part).max() >= SILENCE_PEAK:
            found.append(SpeechWindow(float(start), float(end), part, float(frames.mean())))
    return found


def embed_recordings(
    embedder: OnnxEmbedder, detector: SpeechDetector, recordings: Sequence[Sample], *, progress: Progress | None = None
) -> EmbeddingFile:
    """Find and embed the speech in recordings; those without speech are named in ``skipped``.

    The windows of a recording are several samples of one probe: the columns ``template_id`` and ``media_id`` name the recording.
    ``span`` is where a window starts and ends in seconds, ``measure_seconds`` its length, ``measure_speech`` its mean P(speech).
    """
    model_input = embedder.specification.model_input
    if not isinstance(model_input, SpeechInput):
        raise InvalidParameterError(
            f"{embedder.specification.name}: speech is found for models that read speech, this one reads {model_input.kind}; "
            "leave the detector out"
        )
    files: list[EmbeddingFile] = []
    skipped: list[str] = []
    for number, recording in enumerate(recordings, start=1):
        found = find_speech(recording.read(), detector, model_input, origin=recording.origin)
        if found:
            files.append(_embedded(embedder, recording, found))
        else:
            skipped.append(recording.sample_id)
            logger.warning("%s: no speech was found", recording.origin)
        if progress is not None:
            progress(number, len(recordings), recording.sample_id)
    if not files:
        raise InvalidInputError(
            f"no speech was found in {len(recordings)} recordings, such as {recordings[0].origin}; check that somebody speaks"
        )
    return replace(joined(files), skipped=tuple(skipped))


def _embedded(embedder: OnnxEmbedder, recording: Sample, found: Sequence[SpeechWindow]) -> EmbeddingFile:
    samples = [
        Sample(
            f"{recording.sample_id}#{number}",
            recording.subject_id,
            f"{recording.origin}, {window.start:.1f} to {window.end:.1f} s",
            partial(np.asarray, window.waveform),
        )
        for number, window in enumerate(found, start=1)
    ]
    name = np.array([recording.sample_id] * len(found))
    span = np.array([(window.start, window.end) for window in found])
    columns = {
        "media_id": name,
        "template_id": name,
        "span": span,
        "measure_seconds": span[:, 1] - span[:, 0],
        "measure_speech": np.array([window.speech for window in found]),
    }
    return replace(embedder.embed(samples), columns=columns)
