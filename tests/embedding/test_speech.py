from __future__ import annotations

import io

import numpy as np
import pytest

from holue.embedding.inputs.speech import SpeechInput, resampled
from holue.errors import InvalidFileError, InvalidInputError, InvalidParameterError

RATE = 16_000
NOISE = (0.1 * np.random.default_rng(0).standard_normal(RATE)).astype(np.float32)


def encoded(waveform: np.ndarray, rate: int, format: str = "WAV", subtype: str = "FLOAT") -> bytes:
    import soundfile

    stream = io.BytesIO()
    soundfile.write(stream, waveform, rate, format=format, subtype=subtype)
    return stream.getvalue()


def test_filterbanks_have_no_mean_over_time_and_no_dither() -> None:
    first, second = (SpeechInput().prepare(NOISE, "a") for _ in range(2))
    np.testing.assert_array_equal(first, second)
    # 98 frames in float32 around values of size ten
    np.testing.assert_allclose(first.mean(axis=0), 0, atol=1e-5)
    assert np.abs(SpeechInput(subtract_mean=False).prepare(NOISE, "a").mean(axis=0)).max() > 1


def test_loudness_does_not_matter() -> None:
    # A factor is a constant in the logarithm, which the mean takes out; what is left is float32 rounding.
    np.testing.assert_allclose(SpeechInput().prepare(NOISE, "a"), SpeechInput().prepare(0.5 * NOISE, "a"), atol=1e-4)


def test_stereo_is_averaged() -> None:
    left, right = NOISE, np.roll(NOISE, 100)
    mono = SpeechInput().decode(encoded(np.stack([left, right], axis=1), RATE), "a.wav")
    np.testing.assert_allclose(mono, (left + right) / 2, atol=1e-7)  # one float32 rounding


def test_another_sample_rate_is_resampled() -> None:
    time = np.arange(48_000) / 48_000
    tone = np.sin(2 * np.pi * 440 * time).astype(np.float32)
    heard = SpeechInput().decode(encoded(tone, 48_000), "a.wav")
    assert heard.shape == (RATE,)
    expected = np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)
    # away from the ends, where the filter sees zeros, a tone survives to the filter's pass-band ripple
    np.testing.assert_allclose(heard[200:-200], expected[200:-200], atol=2e-3)
    assert resampled(NOISE, RATE, RATE).base is NOISE or resampled(NOISE, RATE, RATE) is NOISE


def test_ogg_opus_is_read() -> None:
    waveform = SpeechInput().decode(encoded(NOISE, RATE, "OGG", "OPUS"), "a.ogg")
    assert waveform.shape == (RATE,)


def test_silence_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"quiet.ogg: the audio is silent \(peak 1e-05"):
        SpeechInput().prepare(np.full(RATE, 1e-5, np.float32), "quiet.ogg")


@pytest.mark.parametrize("samples", [0, 100, 3999])
def test_too_short_audio_is_refused(samples: int) -> None:
    with pytest.raises(InvalidInputError, match=r"a.ogg: 0\.\d+ s of audio is too short, 0.25 s are needed"):
        SpeechInput().prepare(NOISE[:samples], "a.ogg")
    with pytest.raises(InvalidParameterError, match="one window"):
        SpeechInput(minimum_seconds=0.0)


def test_the_shortest_allowed_utterance_has_a_frame() -> None:
    assert SpeechInput(minimum_seconds=0.025).prepare(NOISE[:400], "a").shape == (1, 80)


def test_an_unreadable_audio_file_is_named() -> None:
    with pytest.raises(InvalidFileError, match=r"a.ogg: not a readable audio file"):
        SpeechInput().decode(b"not audio", "a.ogg")


@pytest.mark.parametrize(
    "wrong", [NOISE.reshape(2, -1), (NOISE * 32768).astype(np.int16), np.full(RATE, np.nan, np.float32)]
)
def test_an_array_that_is_no_mono_waveform_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="sample 0"):
        SpeechInput().prepare(wrong, "sample 0")
