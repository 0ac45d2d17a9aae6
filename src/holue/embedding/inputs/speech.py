"""SpeechInput: mono speech as log-mel filterbanks, the way Kaldi computes them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from math import gcd

import numpy as np

from holue.embedding.inputs.model_input import Float32Array, RawArray
from holue.errors import InvalidFileError, InvalidInputError, InvalidParameterError, MissingDependencyError

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif")
SILENCE_PEAK = 1e-4
"""−80 dB of full scale: below it an utterance holds codec noise, no voice."""


@dataclass(frozen=True)
class SpeechInput:
    """Filterbanks (frames, mel_bins): 25 ms windows every 10 ms, no dither, mean over time subtracted.

    Several channels are averaged, another sample rate is resampled; silence and utterances below
    ``minimum_seconds`` are refused, since a model gives them some embedding too.

    >>> tone = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000).astype(np.float32)
    >>> SpeechInput().prepare(tone, "tone").shape
    (98, 80)
    """

    sample_rate: int = 16_000
    mel_bins: int = 80
    subtract_mean: bool = True
    minimum_seconds: float = 0.25
    name: str = "fbank"

    kind = "speech"
    suffixes = AUDIO_SUFFIXES

    def __post_init__(self) -> None:
        if self.sample_rate < 1000:
            raise InvalidParameterError(f"sample_rate must be at least 1000 Hz, got {self.sample_rate}")
        if self.mel_bins < 3:
            raise InvalidParameterError(f"mel_bins must be at least 3, got {self.mel_bins}")
        if not self.minimum_seconds >= 0.025:
            raise InvalidParameterError(
                f"minimum_seconds must be at least one window of 0.025 s, got {self.minimum_seconds}"
            )

    @property
    def shape(self) -> tuple[int | None, ...]:
        """(frames, mel_bins); the number of frames follows the utterance."""
        return (None, self.mel_bins)

    def decode(self, content: bytes, origin: str) -> RawArray:
        """The waveform of an encoded audio file, mono, at :attr:`sample_rate`."""
        try:
            import soundfile
        except ImportError as error:
            raise MissingDependencyError("soundfile", "embed") from error
        try:
            waveform, rate = soundfile.read(io.BytesIO(content), dtype="float32", always_2d=True)
        except (soundfile.SoundFileError, OSError, TypeError, ValueError) as error:
            raise InvalidFileError(f"{origin}: not a readable audio file ({error}); replace or remove it") from error
        return resampled(waveform.mean(axis=1), int(rate), self.sample_rate)

    def prepare(self, raw: RawArray, origin: str) -> Float32Array:
        """A waveform (n,) of floats in −1..1 at :attr:`sample_rate` → (frames, mel_bins)."""
        waveform = self.as_waveform(raw, origin)
        self._require_voice(waveform, origin)
        try:
            import kaldi_native_fbank as kaldi
        except ImportError as error:
            raise MissingDependencyError("kaldi-native-fbank", "embed") from error
        options = kaldi.FbankOptions()
        options.frame_opts.dither = 0.0
        options.frame_opts.samp_freq = self.sample_rate
        options.mel_opts.num_bins = self.mel_bins
        bank = kaldi.OnlineFbank(options)
        bank.accept_waveform(self.sample_rate, waveform.tolist())
        bank.input_finished()
        frames = np.stack([bank.get_frame(i) for i in range(bank.num_frames_ready)]).astype(np.float32)
        if self.subtract_mean:
            frames = frames - frames.mean(axis=0)
        return frames

    def settings(self) -> dict[str, object]:
        """What changes the numbers; ``minimum_seconds`` only refuses."""
        return {
            "kind": self.kind,
            "sample_rate": self.sample_rate,
            "mel_bins": self.mel_bins,
            "subtract_mean": self.subtract_mean,
        }

    def table(self) -> dict[str, object]:
        """Every setting, as the ``[input]`` table of a specification holds it."""
        return {
            "name": self.name,
            "sample_rate": self.sample_rate,
            "mel_bins": self.mel_bins,
            "subtract_mean": self.subtract_mean,
            "minimum_seconds": self.minimum_seconds,
        }

    def as_waveform(self, raw: RawArray, origin: str) -> Float32Array:
        """The same waveform as float32; an array that is no mono waveform is refused."""
        given = np.asarray(raw)
        if given.dtype.kind != "f" or given.ndim != 1:
            raise InvalidInputError(
                f"{origin}: a waveform must be mono floats (n,) in −1..1, got {given.dtype} {given.shape}; "
                "average the channels, divide 16-bit samples by 32768"
            )
        if not np.isfinite(given).all():
            raise InvalidInputError(f"{origin}: the waveform contains NaN or infinity; decode it again")
        return given.astype(np.float32)

    def _require_voice(self, given: Float32Array, origin: str) -> None:
        seconds = len(given) / self.sample_rate
        if seconds < self.minimum_seconds:
            raise InvalidInputError(
                f"{origin}: {seconds:.3f} s of audio is too short, {self.minimum_seconds} s are needed; "
                "record more, or lower minimum_seconds"
            )
        peak = float(np.abs(given).max())
        if peak < SILENCE_PEAK:
            raise InvalidInputError(
                f"{origin}: the audio is silent (peak {peak:.2g}, {SILENCE_PEAK:g} is needed); remove it"
            )


def resampled(waveform: RawArray, rate: int, wanted: int) -> Float32Array:
    """The waveform at another rate, by a polyphase filter.

    >>> resampled(np.zeros(8_000, np.float32), 8_000, 16_000).shape
    (16000,)
    """
    if rate == wanted:
        return np.asarray(waveform, dtype=np.float32)
    from scipy.signal import resample_poly

    common = gcd(rate, wanted)
    return np.asarray(resample_poly(waveform, wanted // common, rate // common), dtype=np.float32)
