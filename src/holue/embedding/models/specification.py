"""ModelSpecification: an ONNX file, what it reads, and which of its outputs are what."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.model_input import ModelInput
from holue.embedding.inputs.speech import SpeechInput
from holue.errors import InvalidFileError, InvalidParameterError

PRESETS: Mapping[str, tuple[str, ModelInput]] = {
    "arcface": ("arcface_mbf.onnx", ImageInput(height=112, width=112)),
    "campplus": ("campplus.onnx", SpeechInput()),
}
"""Name → file under ``HOLUE_MODELS`` and its input: aligned faces, speech."""

_IMAGE_KEYS = {"name", "size", "colour", "mean", "scale", "resize"}
_SPEECH_KEYS = {"name", "sample_rate", "mel_bins", "subtract_mean", "minimum_seconds"}


@dataclass(frozen=True)
class ModelSpecification:
    """Where a recogniser is and how it is used; ``features`` is None where it has no bottleneck output.

    As a file::

        model = "recogniser.onnx"      # beside this file
        kind = "image"                 # or "speech": sample_rate, mel_bins, subtract_mean, minimum_seconds

        [input]
        name = "image"
        size = [112, 112]              # height, width
        colour = "rgb"                 # or "bgr", "grey"
        mean = 127.5                   # (x − mean) / scale, one number or one per channel
        scale = 127.5
        resize = false                 # true accepts images of other sizes

        [outputs]
        embedding = "embedding"
        features = "features"          # leave out where there is none
    """

    path: Path
    model_input: ModelInput
    embedding: str = "embedding"
    features: str | None = "features"

    @property
    def name(self) -> str:
        """The name of the model: that of its file, without the ending."""
        return self.path.stem

    def without_features(self) -> ModelSpecification:
        """The same model, of which only the embedding is wanted."""
        return replace(self, features=None)

    def fingerprint(self) -> str:
        """A hash of the model file (with external weights beside it) and of the preprocessing.

        Two embeddings can be compared only if their fingerprints are equal.
        """
        if not self.path.is_file():
            raise InvalidFileError(no_such_model(self.path))
        total = hashlib.sha256()
        weights = sorted(self.path.parent.glob(f"{self.path.name}[._]data"))
        for file in (self.path, *weights):
            with file.open("rb") as stream:
                total.update(hashlib.file_digest(stream, "sha256").digest())
        settings = {"input": self.model_input.settings(), "embedding": self.embedding}
        total.update(json.dumps(settings, sort_keys=True).encode())
        return total.hexdigest()

    def to_toml(self) -> str:
        """The file that :func:`read_specification` reads back, for a model beside it."""
        outputs = {"embedding": self.embedding} | ({} if self.features is None else {"features": self.features})
        lines = [f"model = {json.dumps(self.path.name)}", f"kind = {json.dumps(self.model_input.kind)}", "", "[input]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in self.model_input.table().items()]
        lines += ["", "[outputs]", *(f"{key} = {json.dumps(value)}" for key, value in outputs.items())]
        return "\n".join(lines) + "\n"


def no_such_model(path: Path) -> str:
    """What is wrong where no model is at a path, and what to do about it."""
    what = f"{path}: there is no such model; "
    if path.parent != models_directory():
        return f"{what}name an ONNX file"
    if os.environ.get("HOLUE_MODELS"):
        return f"{what}put {path.name} into this folder, which HOLUE_MODELS names, or name an ONNX file"
    return f"{what}set HOLUE_MODELS to the folder that holds {path.name}, or name an ONNX file"


def models_directory() -> Path:
    """``HOLUE_MODELS``, or ``../shared/models`` beside a checkout of this repository."""
    given = os.environ.get("HOLUE_MODELS")
    return Path(given) if given else Path(__file__).resolve().parents[5] / "shared" / "models"


def preset(name: str) -> ModelSpecification:
    """The specification of a known model: ``arcface`` or ``campplus``.

    >>> preset("arcface").model_input.shape
    (3, 112, 112)
    """
    if name not in PRESETS:
        raise InvalidParameterError(f"preset must be one of {', '.join(PRESETS)}, got {name!r}")
    file, model_input = PRESETS[name]
    return ModelSpecification(models_directory() / file, model_input)


def open_specification(model: str | Path) -> ModelSpecification:
    """From a preset's name, a TOML, or an ONNX file: a preset's, or one with its TOML beside it."""
    if str(model) in PRESETS:
        return preset(str(model))
    path = Path(model)
    if path.suffix.lower() == ".toml":
        return read_specification(path)
    if not path.is_file():
        raise InvalidFileError(
            f"{model}: neither a file nor a preset ({', '.join(PRESETS)}); name an ONNX file or its TOML"
        )
    beside = path.with_suffix(".toml")
    if beside.is_file():
        return replace(read_specification(beside), path=path)
    for file, model_input in PRESETS.values():
        if path.name == file:
            return ModelSpecification(path, model_input)
    raise InvalidFileError(
        f"{path}: how its input is prepared is not known; write {beside.name} beside it "
        "(input name, size, colour, mean, scale, outputs)"
    )


def read_specification(path: str | Path) -> ModelSpecification:
    """The TOML of a model; an unknown or missing key is an error that names it."""
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFileError(f"{path}: not a readable TOML ({error})") from error
    _require_keys(path, "", table, {"model", "kind", "input", "outputs"}, required={"model", "kind", "input"})
    model, kind = _text(path, "model", table["model"]), _text(path, "kind", table["kind"])
    if kind not in ("image", "speech"):
        raise InvalidFileError(f'{path}: kind must be "image" or "speech", got {kind!r}')
    given, outputs = table["input"], table.get("outputs", {"embedding": "embedding", "features": "features"})
    _require_keys(path, "outputs", outputs, {"embedding", "features"}, required={"embedding"})
    try:
        model_input = _image_input(path, given) if kind == "image" else _speech_input(path, given)
    except (InvalidParameterError, TypeError, ValueError) as error:
        if isinstance(error, InvalidFileError):
            raise
        raise InvalidFileError(f"{path}: [input]: {error}") from error
    features = outputs.get("features")
    return ModelSpecification(
        path.parent / model,
        model_input,
        _text(path, "outputs.embedding", outputs["embedding"]),
        None if features is None else _text(path, "outputs.features", features),
    )


def _image_input(path: Path, table: Any) -> ImageInput:
    _require_keys(path, "input", table, _IMAGE_KEYS, required={"name", "size"})
    size = table["size"]
    if not isinstance(size, list) or len(size) != 2 or not all(isinstance(edge, int) for edge in size):
        raise InvalidFileError(f"{path}: input.size must be [height, width], got {size!r}")
    numbers = {
        key: tuple(map(float, value)) if isinstance(value, list) else float(value)
        for key, value in table.items()
        if key in ("mean", "scale")
    }
    return ImageInput(
        height=size[0],
        width=size[1],
        colour=_text(path, "input.colour", table.get("colour", "rgb")),
        name=_text(path, "input.name", table["name"]),
        resize=_flag(path, "input.resize", table.get("resize", False)),
        **numbers,
    )


def _speech_input(path: Path, table: Any) -> SpeechInput:
    _require_keys(path, "input", table, _SPEECH_KEYS, required={"name"})
    return SpeechInput(
        sample_rate=int(table.get("sample_rate", 16_000)),
        mel_bins=int(table.get("mel_bins", 80)),
        subtract_mean=_flag(path, "input.subtract_mean", table.get("subtract_mean", True)),
        minimum_seconds=float(table.get("minimum_seconds", 0.25)),
        name=_text(path, "input.name", table["name"]),
    )


def _require_keys(path: Path, where: str, table: Any, known: set[str], *, required: set[str]) -> None:
    label = f"[{where}]" if where else "the file"
    if not isinstance(table, dict):
        raise InvalidFileError(f"{path}: {label} must be a table, got {table!r}")
    for key in table.keys() - known:
        raise InvalidFileError(f"{path}: {label} has an unknown key {key!r}; known: {', '.join(sorted(known))}")
    for key in required - table.keys():
        raise InvalidFileError(f"{path}: {label} lacks the key {key!r}")


def _text(path: Path, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidFileError(f"{path}: {key} must be a string, got {value!r}")
    return value


def _flag(path: Path, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidFileError(f"{path}: {key} must be true or false, got {value!r}")
    return value
