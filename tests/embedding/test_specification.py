from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.speech import SpeechInput
from holue.embedding.models.specification import (
    ModelSpecification,
    models_directory,
    open_specification,
    preset,
    read_specification,
)
from holue.errors import InvalidFileError, InvalidParameterError

IMAGE_TOML = """
model = "tiny.onnx"
kind = "image"
[input]
name = "image"
size = [4, 4]
colour = "bgr"
mean = [1, 2, 3]
scale = 2.0
[outputs]
embedding = "embedding"
"""


def test_a_toml_describes_any_image_model(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(IMAGE_TOML)
    specification = read_specification(path)
    assert specification.path == tmp_path / "tiny.onnx"
    assert specification.model_input == ImageInput(4, 4, "bgr", mean=(1.0, 2.0, 3.0), scale=2.0)
    assert (specification.embedding, specification.features) == ("embedding", None)


@pytest.mark.parametrize(
    "model_input",
    [
        ImageInput(32, 48, "bgr", mean=(1.0, 2.0, 3.0), scale=255.0, resize=True),
        SpeechInput(sample_rate=8000, mel_bins=40, minimum_seconds=0.5, name="x"),
    ],
)
def test_what_is_written_is_read_back(tmp_path: Path, model_input: ImageInput | SpeechInput) -> None:
    path = tmp_path / "net.toml"
    written = ModelSpecification(tmp_path / "net.onnx", model_input, "out", "bottleneck")
    path.write_text(written.to_toml())
    read = read_specification(path)
    assert read == written


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("color = 1\n" + IMAGE_TOML, "unknown key 'color'"),
        (IMAGE_TOML.replace("scale", "std"), "unknown key 'std'"),
        (IMAGE_TOML.replace('kind = "image"', 'kind = "video"'), "got 'video'"),
        (IMAGE_TOML.replace('kind = "image"', ""), "lacks the key 'kind'"),
        (IMAGE_TOML.replace("[4, 4]", "[4]"), "input.size"),
        (IMAGE_TOML.replace('"bgr"', '"cmyk"'), "'cmyk'"),
        (IMAGE_TOML.replace("[1, 2, 3]", "[1, 2]"), "mean must be one number or 3"),
        (IMAGE_TOML.replace("scale = 2.0", "scale = 0"), "scale not zero"),
        (IMAGE_TOML.replace("embedding =", "vector ="), "unknown key 'vector'"),
        ("model = ", "not a readable TOML"),
    ],
)
def test_a_wrong_toml_names_the_file_and_the_key(tmp_path: Path, broken: str, said: str) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(broken)
    with pytest.raises(InvalidFileError, match=r"tiny\.toml") as caught:
        read_specification(path)
    assert said in str(caught.value)


def test_a_model_opens_by_preset_by_toml_and_by_the_toml_beside_it(
    image_model: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = image_model()
    with pytest.raises(InvalidFileError, match=r"write tiny.toml beside it"):
        open_specification(model)
    toml = model.with_suffix(".toml")
    toml.write_text(IMAGE_TOML)
    assert open_specification(model) == open_specification(toml)
    monkeypatch.setenv("HOLUE_MODELS", str(model.parent))
    renamed = model.rename(model.with_name("arcface_mbf.onnx"))
    assert open_specification("arcface") == open_specification(renamed) == preset("arcface")
    with pytest.raises(InvalidFileError, match="neither a file nor a preset"):
        open_specification("arcfase")
    with pytest.raises(InvalidParameterError, match="arcface, campplus"):
        preset("vgg")


def test_the_fingerprint_follows_the_weights_and_the_preprocessing_only(
    image_model: Callable[..., Path],
) -> None:
    path = image_model()
    base = ModelSpecification(path, ImageInput(4, 4))
    fingerprint = base.fingerprint()
    assert replace(base, model_input=ImageInput(4, 4, resize=True)).fingerprint() == fingerprint
    assert base.without_features().fingerprint() == fingerprint
    assert replace(base, model_input=ImageInput(4, 4, "bgr")).fingerprint() != fingerprint
    assert replace(base, model_input=ImageInput(4, 4, mean=0.0)).fingerprint() != fingerprint
    path.with_name("tiny.onnx.data").write_bytes(b"external weights")
    assert base.fingerprint() != fingerprint
    with pytest.raises(InvalidFileError, match=r"gone.onnx: there is no such model; name an ONNX file$"):
        replace(base, path=path.with_name("gone.onnx")).fingerprint()


def test_a_preset_whose_file_is_missing_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLUE_MODELS", str(tmp_path))
    with pytest.raises(
        InvalidFileError, match=r"put arcface_mbf.onnx into this folder, which HOLUE_MODELS names, or name"
    ):
        preset("arcface").fingerprint()
    monkeypatch.delenv("HOLUE_MODELS")
    lost = replace(preset("arcface"), path=models_directory() / "lost.onnx")
    with pytest.raises(InvalidFileError, match=r"set HOLUE_MODELS to the folder that holds lost.onnx, or name an ONNX"):
        lost.fingerprint()
