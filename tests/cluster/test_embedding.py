"""``holue embed --cluster`` embeds files on the nodes, with the bits of one machine, and continues where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from holue.cluster.local_ray import LocalRay
from holue.embedding.cluster_embedder import ClusterEmbedder
from holue.embedding.embed import embed_to_file
from holue.embedding.inputs.samples import find_samples
from holue.embedding.models.embedder import OnnxEmbedder
from holue.errors import InvalidFileError, InvalidParameterError

N = 9


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    helper, kinds = onnx.helper, onnx.TensorProto
    rng = np.random.default_rng(0)
    weights = onnx.numpy_helper.from_array(rng.standard_normal((3 * 8 * 8, 6)).astype(np.float32), "w")
    graph = helper.make_graph(
        [
            helper.make_node("Flatten", ["image"], ["flat"]),
            helper.make_node("MatMul", ["flat", "w"], ["embedding"]),
        ],
        "tiny",
        [helper.make_tensor_value_info("image", kinds.FLOAT, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("embedding", kinds.FLOAT, ["batch", 6])],
        [weights],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, str(tmp_path / "tiny.onnx"))
    (tmp_path / "tiny.toml").write_text(
        'model = "tiny.onnx"\nkind = "image"\n[input]\nname = "image"\nsize = [8, 8]\n[outputs]\nembedding = "embedding"\n'
    )
    return tmp_path / "tiny.onnx"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    for number in range(N):
        place = tmp_path / "images" / f"person{number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(place / f"{number}.png")
    return tmp_path / "images"


def test_files_are_embedded_on_the_nodes_as_on_one_machine(
    ray_cluster: LocalRay, model: Path, folder: Path, tmp_path: Path
) -> None:
    alone = embed_to_file(model, [folder], tmp_path / "one.npz", cache_dir=tmp_path / "one", batch_size=2)
    spread = OnnxEmbedder.open(model, batch_size=2, cache_dir=tmp_path / "kept")
    object.__setattr__(spread, "chunk_size", 2)
    samples = find_samples([folder], spread.specification.model_input)
    seen: list[int] = []

    def stop_at_third(done: int, total: int, note: str = "") -> None:
        seen.append(done)
        if len(seen) == 3:
            raise KeyboardInterrupt

    embedder = ClusterEmbedder(spread, ray_cluster.address)
    with pytest.raises(KeyboardInterrupt):
        embedder.embed([folder], samples, progress=stop_at_third)
    seen.clear()
    later: list[tuple[int, int]] = []
    file = embedder.embed([folder], samples, progress=lambda done, total, note="": later.append((done, total)))
    assert 1 <= len(later) <= 2  # of five chunks three were kept, or one more that came with them
    assert later[-1] == (N, N)
    assert np.array_equal(file.embeddings, alone.embeddings)
    assert np.array_equal(file.sample_id, alone.sample_id)
    assert file.fingerprint == alone.fingerprint
    again: list[Any] = []
    embedder.embed([folder], samples, progress=lambda *done: again.append(done))
    assert again == []


def test_a_damaged_file_is_named_and_detection_is_refused(
    ray_cluster: LocalRay, model: Path, folder: Path, tmp_path: Path
) -> None:
    (folder / "person1" / "1.png").write_bytes(b"no image")
    with pytest.raises(InvalidFileError, match=r"1\.png"):
        embed_to_file(model, [folder], tmp_path / "x.npz", cache_dir=tmp_path / "c", cluster=ray_cluster.address)
    with pytest.raises(InvalidParameterError, match="leave detect out"):
        embed_to_file(model, [folder], tmp_path / "x.npz", detect="yunet", cluster=ray_cluster.address)
