from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
REPOSITORY = Path(__file__).resolve().parents[2]


def _save(path: Path, nodes: list, inputs: list, outputs: list, constants: dict[str, np.ndarray]) -> Path:
    from onnx import helper, numpy_helper

    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return path


def _value(name: str, shape: list) -> object:
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)


@pytest.fixture
def image_model(tmp_path: Path) -> Callable[..., Path]:
    """An ONNX model: features = the flattened image, embedding = features · a fixed random matrix."""

    def make(size: int = 4, channels: int = 3, batch: object = "batch", features: bool = True) -> Path:
        n = channels * size * size
        weights = np.random.default_rng(7).standard_normal((n, 5)).astype(np.float32)
        nodes = [
            onnx.helper.make_node("Flatten", ["image"], ["features"], axis=1),
            onnx.helper.make_node("MatMul", ["features", "weights"], ["embedding"]),
        ]
        outputs = [_value("embedding", [batch, 5])] + ([_value("features", [batch, n])] if features else [])
        inputs = [_value("image", [batch, channels, size, size])]
        return _save(tmp_path / "tiny.onnx", nodes, inputs, outputs, {"weights": weights})

    return make


@pytest.fixture
def speech_model(tmp_path: Path) -> Path:
    """An ONNX model on filterbanks: features = the first frame, embedding = its first ten bins."""
    nodes = [
        onnx.helper.make_node("Gather", ["fbank", "first"], ["features"], axis=1),
        onnx.helper.make_node("Gather", ["features", "bins"], ["embedding"], axis=1),
    ]
    constants = {"first": np.asarray(0), "bins": np.arange(10)}
    outputs = [_value("embedding", ["batch", 10]), _value("features", ["batch", 80])]
    return _save(tmp_path / "voice.onnx", nodes, [_value("fbank", ["batch", "frames", 80])], outputs, constants)


@pytest.fixture
def png() -> Callable[[np.ndarray], bytes]:
    from PIL import Image

    def encode(pixels: np.ndarray) -> bytes:
        stream = io.BytesIO()
        Image.fromarray(pixels).save(stream, "PNG")
        return stream.getvalue()

    return encode


@pytest.fixture
def real_data() -> Path:
    folder = Path(os.environ.get("HOLUE_DATA") or REPOSITORY.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"the real data is not at {folder}; set HOLUE_DATA")
    return folder


@pytest.fixture
def real_models() -> Path:
    from holue.embedding.models.specification import models_directory

    if not models_directory().is_dir():
        pytest.skip(f"the models are not at {models_directory()}; set HOLUE_MODELS")
    return models_directory()
