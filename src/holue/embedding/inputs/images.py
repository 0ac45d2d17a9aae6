"""ImageInput: images of one size, one colour order and one scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.embedding.inputs.image_file import IMAGE_SUFFIXES, decode_image, pillow
from holue.embedding.inputs.model_input import Float32Array, RawArray
from holue.errors import InvalidInputError, InvalidParameterError

CHANNELS = {"rgb": 3, "bgr": 3, "grey": 1}


@dataclass(frozen=True)
class ImageInput:
    """Images (channels, height, width), ``(x − mean) / scale`` of the bytes 0..255.

    An image of another size is refused unless ``resize`` is set: a face that is not aligned to the
    template gives an embedding that looks fine and is not.

    >>> ImageInput(height=2, width=2, colour="grey").prepare(np.full((2, 2), 255, np.uint8), "white")
    array([[[1., 1.],
            [1., 1.]]], dtype=float32)
    """

    height: int
    width: int
    colour: str = "rgb"
    mean: float | tuple[float, ...] = 127.5
    scale: float | tuple[float, ...] = 127.5
    name: str = "image"
    resize: bool = False

    kind = "image"
    suffixes = IMAGE_SUFFIXES

    def __post_init__(self) -> None:
        if self.colour not in CHANNELS:
            raise InvalidParameterError(f"colour must be one of {', '.join(CHANNELS)}, got {self.colour!r}")
        if min(self.height, self.width) < 1:
            raise InvalidParameterError(f"size must be positive (height, width), got ({self.height}, {self.width})")
        for field, value in (("mean", self.mean), ("scale", self.scale)):
            count, channels = np.size(value), CHANNELS[self.colour]
            if count not in (1, channels):
                raise InvalidParameterError(f"{field} must be one number or {channels} of them, got {count}")
            if not np.isfinite(value).all() or (field == "scale" and not np.all(value)):
                raise InvalidParameterError(f"{field} must be finite, and scale not zero, got {value!r}")

    @property
    def shape(self) -> tuple[int | None, ...]:
        """(channels, height, width)."""
        return (CHANNELS[self.colour], self.height, self.width)

    def decode(self, content: bytes, origin: str) -> RawArray:
        """The pixels of an encoded image, RGB (H, W, 3) or grey (H, W), turned upright."""
        return decode_image(content, origin, "L" if self.colour == "grey" else "RGB")

    def prepare(self, raw: RawArray, origin: str) -> Float32Array:
        """Bytes (H, W, 3) in RGB order or grey (H, W) → (channels, height, width)."""
        pixels = self._as_pixels(np.asarray(raw), origin)
        if pixels.shape[:2] != (self.height, self.width):
            pixels = self._resized(pixels, origin)
        if self.colour == "bgr":
            pixels = pixels[:, :, ::-1]
        scaled = (pixels.astype(np.float32) - np.asarray(self.mean, np.float32)) / np.asarray(self.scale, np.float32)
        return np.ascontiguousarray(scaled.transpose(2, 0, 1), dtype=np.float32)

    def settings(self) -> dict[str, object]:
        """What changes the numbers; ``resize`` does not, for any image that both of its values accept."""
        return {
            "kind": self.kind,
            "size": [self.height, self.width],
            "colour": self.colour,
            "mean": np.ravel(self.mean).tolist(),
            "scale": np.ravel(self.scale).tolist(),
        }

    def table(self) -> dict[str, object]:
        """Every setting, as the ``[input]`` table of a specification holds it."""
        return {
            "name": self.name,
            "size": [self.height, self.width],
            "colour": self.colour,
            "mean": self.mean,
            "scale": self.scale,
            "resize": self.resize,
        }

    def _as_pixels(self, raw: npt.NDArray[np.generic], origin: str) -> npt.NDArray[np.uint8]:
        if raw.dtype != np.uint8 or raw.ndim not in (2, 3) or (raw.ndim == 3 and raw.shape[2] not in (1, 3)):
            raise InvalidInputError(
                f"{origin}: an image must be bytes (uint8) of shape (H, W), (H, W, 1) or (H, W, 3), "
                f"got {raw.dtype} {raw.shape}; for floats in 0..1 use (255 * x).round().astype(np.uint8)"
            )
        pixels: npt.NDArray[np.uint8] = raw.reshape(*raw.shape[:2], -1)  # type: ignore[assignment]
        if self.colour == "grey" and pixels.shape[2] == 3:
            grey = np.asarray(pillow().fromarray(pixels).convert("L"))
            return grey[:, :, None]
        if self.colour != "grey" and pixels.shape[2] == 1:
            return np.repeat(pixels, 3, axis=2)
        return pixels

    def _resized(self, pixels: npt.NDArray[np.uint8], origin: str) -> npt.NDArray[np.uint8]:
        height, width = pixels.shape[:2]
        if not self.resize:
            raise InvalidInputError(
                f"{origin}: the image is {height}×{width}, the model takes {self.height}×{self.width}; "
                "crop and align it to that size, find the faces with `holue embed --detect yunet`, or allow resizing with "
                "resize = true"
            )
        Image = pillow()
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        smaller = image.resize((self.width, self.height), Image.Resampling.BILINEAR)
        return np.asarray(smaller).reshape(self.height, self.width, -1)
