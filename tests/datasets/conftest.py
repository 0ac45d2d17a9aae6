from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def folder_arrays() -> dict[str, dict[str, np.ndarray]]:
    """A small valid folder protocol: two enrolled subjects, one stranger, in each part."""
    rng = np.random.default_rng(0)
    files = {}
    for part in ("dev", "eval"):
        for noun, names in (("gallery", "aabb"), ("probes", "abccab")):
            files[f"{part}/{noun}"] = {
                "embeddings": rng.normal(size=(len(names), 8)).astype(np.float32),
                "subject_id": np.array([f"{part}-{name}" for name in names]),
            }
    return files


@pytest.fixture
def write_protocol_folder(tmp_path: Path) -> Callable[[dict[str, dict[str, np.ndarray]]], Path]:
    """Write arrays by file name as a folder protocol of ``.npz`` files."""

    def write(files: dict[str, dict[str, np.ndarray]]) -> Path:
        folder = tmp_path / "protocol"
        for name, arrays in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            np.savez(folder / f"{name}.npz", **arrays)
        return folder

    return write
