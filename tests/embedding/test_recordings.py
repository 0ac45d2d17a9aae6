from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from holue.embedding.embed import embed_to_file
from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.samples import array_samples, find_samples
from holue.embedding.inputs.speech import SpeechInput
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.specification import ModelSpecification
from holue.embedding.recordings.recordings import embed_recordings, find_speech
from holue.embedding.recordings.speech_detector import FRAME, SpeechDetector
from holue.embedding.recordings.speech_windows import LONGEST, LONGEST_PAUSE, MARGIN, SHORTEST, SPEECH, speech_windows
from holue.errors import InvalidFileError, InvalidInputError, InvalidParameterError

RATE = 16_000
NOISE = (0.1 * np.random.default_rng(0).standard_normal(20 * RATE)).astype(np.float32)
probabilities = arrays(np.float32, st.integers(0, 600), elements=st.sampled_from(np.float32([0, 0.2, 0.6, 1])))


class Loud(SpeechDetector):
    """Takes every frame that is not silent for speech."""

    def probabilities(self, waveform: np.ndarray) -> np.ndarray:
        whole = waveform[: len(waveform) // FRAME * FRAME].reshape(-1, FRAME)
        return (np.abs(whole).max(axis=1) > 0.01).astype(np.float32)


@pytest.fixture
def detector(tmp_path: Path) -> SpeechDetector:
    return Loud(tmp_path / "none.onnx")


@pytest.fixture
def silero() -> SpeechDetector:
    try:
        return SpeechDetector.open()
    except InvalidFileError as error:
        pytest.skip(f"needs the model of the package silero-vad: {error}")


@pytest.fixture
def embedder(speech_model: Path) -> OnnxEmbedder:
    return OnnxEmbedder(ModelSpecification(speech_model, SpeechInput()))


def spoken(*seconds: float) -> np.ndarray:
    """Noise and silence in turn, beginning with noise."""
    parts = [NOISE[: round(length * RATE)] * (number % 2 == 0) for number, length in enumerate(seconds)]
    return np.concatenate(parts)


@given(probabilities)
def test_windows_are_ordered_short_and_within_the_recording(given_probabilities: np.ndarray) -> None:
    seconds = len(given_probabilities) * FRAME / RATE
    windows = speech_windows(given_probabilities, seconds)
    flat = windows.ravel()
    assert (np.diff(flat) >= -1e-9).all()
    if len(windows):
        assert flat[0] >= 0
        assert flat[-1] <= seconds
        lengths = np.diff(windows, axis=1)
        assert lengths.max() <= LONGEST + 1e-9
        assert lengths.min() >= min(SHORTEST, LONGEST / 2) - 1e-9


@given(probabilities)
def test_speech_is_in_a_window_unless_it_is_short(given_probabilities: np.ndarray) -> None:
    windows = speech_windows(given_probabilities, len(given_probabilities) * FRAME / RATE)
    middle = (np.arange(len(given_probabilities)) + 0.5) * FRAME / RATE
    covered = np.zeros(len(middle), dtype=bool)
    for start, end in windows:
        covered |= (middle >= start) & (middle <= end)
    left_out = (given_probabilities >= SPEECH) & ~covered
    runs = np.split(np.flatnonzero(left_out), np.flatnonzero(np.diff(np.flatnonzero(left_out)) > 1) + 1)
    assert all(len(run) * FRAME / RATE < SHORTEST for run in runs)


def test_a_short_pause_does_not_end_a_window_and_a_long_one_does() -> None:
    frames = {seconds: round(seconds * RATE / FRAME) for seconds in (2, LONGEST_PAUSE / 2, 2 * LONGEST_PAUSE)}
    for pause, windows in ((LONGEST_PAUSE / 2, 1), (2 * LONGEST_PAUSE, 2)):
        speech = np.ones(frames[2], np.float32)
        found = speech_windows(np.concatenate([speech, np.zeros(frames[pause], np.float32), speech]), 10)
        assert len({start for start, _ in found} - {end for _, end in found}) == windows


def test_windows_of_a_recording_are_samples_of_one_probe(embedder: OnnxEmbedder, detector: SpeechDetector) -> None:
    recordings = [spoken(1.5, 1.5, 6.0, 1.0), spoken(0.0, 3.0), spoken(2.0)]
    samples = array_samples(recordings, sample_id=["a", "b", "c"], subject_id=["ann", "bob", "cay"])
    file = embed_recordings(embedder, detector, samples)
    assert list(file.sample_id) == ["a#1", "a#2", "a#3", "c#1"]
    assert list(file.columns["template_id"]) == list(file.columns["media_id"]) == ["a", "a", "a", "c"]
    assert list(file.subject_id) == ["ann", "ann", "ann", "cay"]
    assert file.skipped == ("b",)
    frame = FRAME / RATE
    expected = [[0, 1.5 + MARGIN], [3 - MARGIN, 6], [6, 9 + MARGIN], [0, 2]]
    np.testing.assert_allclose(file.columns["span"], expected, atol=2 * frame)  # edges are those of frames
    np.testing.assert_allclose(file.columns["measure_seconds"], np.diff(file.columns["span"])[:, 0])
    assert (file.columns["measure_speech"] > 0.8).all()


def test_a_window_is_embedded_like_the_utterance_it_holds(embedder: OnnxEmbedder, detector: SpeechDetector) -> None:
    recording = spoken(0.0, 1.0, 2.0, 1.0)
    [window] = find_speech(recording, detector, SpeechInput())
    np.testing.assert_array_equal(window.waveform, recording[round(window.start * RATE) : round(window.end * RATE)])
    file = embed_recordings(embedder, detector, array_samples([recording]))
    np.testing.assert_array_equal(file.embeddings, embedder.embed_arrays([window.waveform]).embeddings)


def test_recordings_without_any_speech_are_an_error(embedder: OnnxEmbedder, detector: SpeechDetector) -> None:
    for silent in (np.zeros(2 * RATE, np.float32), NOISE[:100]):
        with pytest.raises(InvalidInputError, match=r"no speech was found in 1 recordings, such as sample 0"):
            embed_recordings(embedder, detector, array_samples([silent]))
    with pytest.raises(InvalidInputError, match=r"sample 0: the waveform contains NaN"):
        embed_recordings(embedder, detector, array_samples([np.full(RATE, np.nan, np.float32)]))


def test_a_speech_detector_needs_a_model_of_speech(
    image_model: Callable[..., Path], detector: SpeechDetector, tmp_path: Path
) -> None:
    images = OnnxEmbedder(ModelSpecification(image_model(), ImageInput(4, 4)))
    with pytest.raises(
        InvalidParameterError, match="speech is found for models that read speech, this one reads image"
    ):
        embed_recordings(images, detector, array_samples([NOISE]))
    with pytest.raises(InvalidParameterError, match="which='central' chooses among the faces"):
        embed_to_file("campplus", [tmp_path], tmp_path / "x.npz", detect="silero", which="central")


def test_a_file_that_is_no_speech_detector_is_refused(tmp_path: Path, image_model: Callable[..., Path]) -> None:
    with pytest.raises(
        InvalidFileError, match=r"none.onnx: no such speech detector; run: pip install --no-deps silero-vad"
    ):
        SpeechDetector.open(tmp_path / "none.onnx")
    with pytest.raises(InvalidFileError, match=r"tiny.onnx: not Silero's speech detector: its inputs are image"):
        SpeechDetector.open(image_model())


@pytest.mark.data
def test_speech_is_found_among_silence_and_noise(silero: SpeechDetector, real_data: Path) -> None:
    speech = SpeechInput()
    samples = find_samples([real_data / "speechocean" / "utterances.zip"], speech)[:3]
    utterances = [speech.decode(bytes(sample.read()), sample.origin) for sample in samples]
    utterances = [0.05 * utterance / utterance.std() for utterance in utterances]
    pause = np.zeros(3 * RATE, np.float32)
    recording = np.concatenate([part for utterance in utterances for part in (pause, utterance)] + [pause])
    recording += 0.005 * np.random.default_rng(0).standard_normal(len(recording)).astype(np.float32)
    is_pause = np.concatenate(
        [part for utterance in utterances for part in (pause == 0, np.zeros(len(utterance), bool))] + [pause == 0]
    )
    windows = find_speech(recording, silero, speech)
    inside = np.zeros(len(recording), bool)
    for window in windows:
        inside[round(window.start * RATE) : round(window.end * RATE)] = True
    assert len(windows) >= 3
    assert inside[is_pause].mean() < 0.1
    assert inside[~is_pause].mean() > 0.4  # an utterance begins and ends with silence of its own


@pytest.mark.data
def test_the_command_embeds_a_long_recording(
    silero: SpeechDetector, real_data: Path, real_models: Path, tmp_path: Path
) -> None:
    import soundfile

    speech = SpeechInput()
    samples = find_samples([real_data / "speechocean" / "utterances.zip"], speech)[:2]
    parts = [
        part for sample in samples for part in (np.zeros(2 * RATE), speech.decode(bytes(sample.read()), sample.origin))
    ]
    stream = io.BytesIO()
    soundfile.write(stream, np.concatenate(parts), RATE, format="WAV")
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "interview.wav").write_bytes(stream.getvalue())
    file = embed_to_file("campplus", [tmp_path], tmp_path / "x.npz", detect="silero", cache_dir=tmp_path / "cache")
    assert set(file.columns["media_id"]) == {"ann/interview.wav"}
    assert set(file.subject_id) == {"ann"}
    assert len(file) >= 2
