from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """The path of a file or folder of the real data, or a skip that says where it was looked for."""

    def find(name: str) -> Path:
        path = Path(os.environ.get("HOLUE_DATA", _ROOT / ".." / "shared" / "data")) / name
        if not path.exists():
            pytest.skip(f"needs the real data {name}; set HOLUE_DATA to the folder that holds it")
        return path

    return find


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
