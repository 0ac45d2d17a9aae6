"""Degradation: seeded damage to an image or an utterance, whose level is known.

A degradation is drawn first and applied later, each from a generator of the sample's own, so that what happens to one sample
does not depend on which others there are. Its label names its levels, separated by commas: ``20 px, noise 25``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from holue.embedding.inputs.model_input import Float32Array, RawArray
from holue.errors import InvalidParameterError, MissingDependencyError

Pixels = npt.NDArray[np.uint8]

SECONDS = (0.5, 1.0, 2.0, 4.0)
SIGNAL_TO_NOISE = (None, 20.0, 10.0, 5.0)
"""Decibels; None adds no noise."""
LABEL_SEPARATOR = ", "
RECIPE = "degradation 1"
"""Part of every cache key: raise the number when the same label comes to mean another damage."""


class Degradation(Protocol):
    """What is done to one sample."""

    @property
    def label(self) -> str:
        """Its levels, for the tables."""

    def apply(self, raw: RawArray, rng: np.random.Generator) -> RawArray:
        """A damaged copy; ``rng`` places and fills what is random about it."""


@dataclass(frozen=True)
class ImageDegradation:
    """An image made ``size`` pixels large and brought back, after occlusion and blur, before noise.

    ``blur`` is the radius of a Gaussian in pixels, ``noise`` a deviation in grey levels, ``occlusion`` the share of the area
    that a grey rectangle hides; 0 leaves the image as it is.

    >>> ImageDegradation(size=20, noise=25.0).label
    '20 px, noise 25'
    >>> grey = np.full((112, 112, 3), 99, np.uint8)
    >>> bool((ImageDegradation(size=14).apply(grey, np.random.default_rng(0)) == grey).all())
    True
    """

    size: int
    blur: float = 0.0
    noise: float = 0.0
    occlusion: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidParameterError(f"size must be at least 1 pixel, got {self.size}")
        if not 0 <= self.occlusion < 1:
            raise InvalidParameterError(f"occlusion is a share of the area in [0, 1), got {self.occlusion}")

    @property
    def label(self) -> str:
        """``20 px`` and, where there is one, the second degradation."""
        extras = (("blur", self.blur), ("noise", self.noise), ("occlusion", self.occlusion))
        return LABEL_SEPARATOR.join([f"{self.size} px", *(f"{name} {level:g}" for name, level in extras if level)])

    def apply(self, raw: RawArray, rng: np.random.Generator) -> Pixels:
        """Bytes (H, W) or (H, W, 3) of the same shape."""
        try:
            from PIL import Image, ImageFilter
        except ImportError as error:
            raise MissingDependencyError("pillow", "embed") from error
        pixels = np.array(raw, dtype=np.uint8)
        height, width = pixels.shape[:2]
        if self.occlusion:
            _occlude(pixels, self.occlusion, rng)
        image = Image.fromarray(pixels)
        if self.blur:
            image = image.filter(ImageFilter.GaussianBlur(self.blur))
        if self.size < max(height, width):
            share = self.size / max(height, width)
            smaller = (max(1, round(width * share)), max(1, round(height * share)))
            image = image.resize(smaller, Image.Resampling.BILINEAR).resize((width, height), Image.Resampling.BILINEAR)
        damaged = np.asarray(image)
        if self.noise:
            # One draw per pixel, the same in every channel: grey images stay grey.
            grain = rng.normal(0, self.noise, (height, width) + (1,) * (damaged.ndim - 2))
            damaged = np.clip(damaged + grain, 0, 255).round().astype(np.uint8)
        return damaged


@dataclass(frozen=True)
class ImageLevels:
    """Which degradations are drawn: ``sizes_only`` is the share of images that are only resized.

    The others are also blurred, noisy or occluded, as many each, at any of the levels.
    """

    sizes: tuple[int, ...]
    blurs: tuple[float, ...]
    noises: tuple[float, ...]
    occlusions: tuple[float, ...]
    sizes_only: float


FACE_LEVELS = ImageLevels((112, 48, 28, 20, 14), (1.5, 3.0), (15.0, 35.0), (0.15, 0.3), sizes_only=0.6)
"""For images of 112 pixels."""


@dataclass(frozen=True)
class SpeechDegradation:
    """A cut of at most ``seconds`` at a random place, with white noise ``signal_to_noise`` decibels below the speech.

    >>> SpeechDegradation(seconds=0.5, signal_to_noise=10.0).label
    '0.5 s, 10 dB'
    >>> speech = np.ones(32_000, np.float32)
    >>> SpeechDegradation(seconds=0.5).apply(speech, np.random.default_rng(0)).shape
    (8000,)
    """

    seconds: float
    signal_to_noise: float | None = None
    sample_rate: int = 16_000

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InvalidParameterError(f"seconds must be positive, got {self.seconds}")

    @property
    def label(self) -> str:
        """``0.5 s, 10 dB``."""
        noise = "no noise" if self.signal_to_noise is None else f"{self.signal_to_noise:g} dB"
        return f"{self.seconds:g} s{LABEL_SEPARATOR}{noise}"

    def apply(self, raw: RawArray, rng: np.random.Generator) -> Float32Array:
        """The cut, noisy waveform."""
        waveform = np.asarray(raw, dtype=np.float32)
        length = min(len(waveform), round(self.seconds * self.sample_rate))
        start = _loudest_of(waveform, length, rng)
        cut = waveform[start : start + length]
        if self.signal_to_noise is None:
            return cut.copy()
        power = float(np.square(cut, dtype=np.float64).mean())
        deviation = np.sqrt(power / 10 ** (self.signal_to_noise / 10))
        noisy: Float32Array = (cut + rng.normal(0, deviation, length)).astype(np.float32)
        return noisy


def draw_image_degradation(rng: np.random.Generator, levels: ImageLevels = FACE_LEVELS) -> ImageDegradation:
    """One of the sizes and, for some of the images, a blur, noise or an occlusion.

    >>> draw_image_degradation(np.random.default_rng(1)).label
    '28 px, noise 15'
    """
    size = int(rng.choice(levels.sizes))
    if rng.random() < levels.sizes_only:
        return ImageDegradation(size)
    kind = ("blur", "noise", "occlusion")[int(rng.integers(3))]
    choices = {"blur": levels.blurs, "noise": levels.noises, "occlusion": levels.occlusions}[kind]
    return ImageDegradation(size, **{kind: choices[int(rng.integers(len(choices)))]})


def draw_speech_degradation(rng: np.random.Generator) -> SpeechDegradation:
    """One of four lengths and one of four levels of noise.

    >>> draw_speech_degradation(np.random.default_rng(1)).label
    '1 s, 10 dB'
    """
    seconds = SECONDS[int(rng.integers(len(SECONDS)))]
    return SpeechDegradation(seconds, SIGNAL_TO_NOISE[int(rng.integers(len(SIGNAL_TO_NOISE)))])


def sample_generator(seed: int, version: int, sample_id: str) -> np.random.Generator:
    """The generator of one sample: the same whatever else is degraded, in whatever order."""
    name = int.from_bytes(hashlib.sha256(sample_id.encode()).digest()[:8], "little")
    return np.random.default_rng([seed, version, name])


def _occlude(pixels: Pixels, share: float, rng: np.random.Generator) -> None:
    height, width = pixels.shape[:2]
    # The rectangle's edges are drawn so that its area is the share, whatever its shape.
    stretch = rng.uniform(0.7, 1.4)
    tall, wide = (min(1.0, share**0.5 * stretch), min(1.0, share**0.5 / stretch))
    rows, columns = round(tall * height), round(wide * width)
    top, left = int(rng.integers(height - rows + 1)), int(rng.integers(width - columns + 1))
    pixels[top : top + rows, left : left + columns] = int(rng.integers(256))


def _loudest_of(waveform: Float32Array, length: int, rng: np.random.Generator, tries: int = 5) -> int:
    """A random start; of a few the loudest, since a cut that fell on a pause would hold no voice at all."""
    starts = rng.integers(len(waveform) - length + 1, size=tries)
    power = [float(np.square(waveform[start : start + length], dtype=np.float64).sum()) for start in starts]
    return int(starts[int(np.argmax(power))])
