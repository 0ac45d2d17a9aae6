"""Export: a trained head or network as ONNX with a JSON beside it, checked against what was trained."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from holue.artifact import whole_file, write_text
from holue.embedding.heads.trained_head import TrainedHead
from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedder import open_session
from holue.embedding.models.onnx_name import onnx_file
from holue.embedding.models.specification import ModelSpecification
from holue.embedding.training.images.image_network import ImageNetwork
from holue.embedding.training.pytorch import torch
from holue.errors import ArtifactError, MissingDependencyError

FORMAT = 1
AGREEMENT = 1e-4
"""How far onnxruntime may be from torch, relative to the largest output: float32 sums in another order."""


def export_head(head: TrainedHead, path: str | Path) -> Path:
    """Write ``path.onnx`` (features → the head's output) and ``path.json``; read back by ``OnnxHead.load``."""
    onnx_path = onnx_file(path)
    example = np.random.default_rng(0).standard_normal((3, head.feature_dim)).astype(np.float32)
    mean, deviation = _feature_scale(head.module)
    _write_onnx(head.module, mean + deviation * example, onnx_path, "features", [head.output])
    record = {
        "kind": head.kind,
        "output": head.output,
        "feature_dim": head.feature_dim,
        "recogniser": head.recogniser,
        "details": dict(head.details),
        "settings": asdict(head.settings),
        "history": asdict(head.history),
    }
    _write_record(onnx_path, record)
    return onnx_path


def export_network(network: ImageNetwork, path: str | Path) -> Path:
    """Write ``path.onnx`` (image → embedding and features), ``path.toml`` for ``OnnxEmbedder``, and ``path.json``."""
    onnx_path = onnx_file(path)
    shape = (3, *(edge for edge in network.image_input.shape if edge is not None))
    example = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    _write_onnx(network.module, example, onnx_path, "image", ["embedding", "features"])
    specification = ModelSpecification(onnx_path, network.image_input)
    write_text(onnx_path.with_suffix(".toml"), specification.to_toml())
    record = {
        "kind": "network",
        "output": "embedding",
        "feature_dim": network.module.feature_dim,
        "details": dict(network.details),
        "settings": asdict(network.settings),
        "history": asdict(network.history),
    }
    _write_record(onnx_path, record)
    return onnx_path


def _write_onnx(module: torch.nn.Module, example: Float32Array, path: Path, given: str, outputs: Sequence[str]) -> None:
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("onnxscript", "train") from error
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / path.name
        _export(module, example, exported, given, outputs)
        without_traces(exported)
        _require_agreement(module, example, exported, given, outputs)
        with whole_file(path) as stream:
            stream.write(exported.read_bytes())


def _export(module: torch.nn.Module, example: Float32Array, path: Path, given: str, outputs: Sequence[str]) -> None:
    module.eval()
    # The exporter talks about itself and about packages that are not needed here.
    talkative = logging.getLogger("torch.onnx")
    level = talkative.level
    talkative.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module,
                (torch.from_numpy(example),),
                path,
                input_names=[given],
                output_names=list(outputs),
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
    finally:
        talkative.setLevel(level)


def without_traces(path: Path) -> None:
    """Take out of an ONNX file where its nodes came from: the exporter writes the paths of the machine it ran on."""
    import onnx

    model = onnx.load(path)
    graph = model.graph
    for part in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    onnx.save(model, path)


def _require_agreement(
    module: torch.nn.Module, example: Float32Array, path: Path, given: str, outputs: Sequence[str]
) -> None:
    session = open_session(path)
    # Two sizes of batch: one alone could be baked into the graph.
    for batch in (example, example[:1]):
        with torch.no_grad():
            trained = module(torch.from_numpy(batch))
        expected = trained if isinstance(trained, tuple) else (trained,)
        for name, ours, theirs in zip(outputs, expected, session.run(list(outputs), {given: batch})):
            error = float(np.abs(ours.numpy() - theirs).max()) / max(float(ours.abs().max()), 1e-12)
            if not error <= AGREEMENT:
                raise ArtifactError(
                    f"{path}: output {name!r} of the exported model differs from the trained one by {error:.2g} "
                    f"of its size, at most {AGREEMENT:g} is allowed; export again with other versions of torch and "
                    "onnxruntime"
                )


def _write_record(onnx_path: Path, record: dict[str, Any]) -> None:
    digest = hashlib.sha256(onnx_path.read_bytes()).hexdigest()
    text = json.dumps({"format": FORMAT, "onnx_sha256": digest, **record}, indent=2, allow_nan=False)
    write_text(onnx_path.with_suffix(".json"), text + "\n")


def _feature_scale(module: torch.nn.Module) -> tuple[Float32Array, Float32Array]:
    """The mean and deviation the head was trained on: examples elsewhere would check it where it saturates."""
    buffers = {name.rsplit(".", 1)[-1]: tensor.numpy() for name, tensor in module.named_buffers()}
    return buffers["mean"], buffers["deviation"]
