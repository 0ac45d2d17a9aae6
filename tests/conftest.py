"""The real data, where it is there: tests that need it are skipped with a reason elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

_ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """The path of a file or folder of the real data, or a skip that says where it was looked for."""

    def find(name: str) -> Path:
        path = Path(os.environ.get("HOLUE_DATA", _ROOT / ".." / "shared" / "data")) / name
        if not path.exists():
            pytest.skip(f"needs the real data {name}; set HOLUE_DATA to the folder that holds it")
        return path

    return find


@pytest.fixture(scope="session")
def real_faces(real_data: Callable[[str], Path]) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
    """The embeddings of LFW and whose they are."""
    with np.load(real_data("lfw/arcface_mbf.npz"), allow_pickle=False) as file:
        return file["embeddings"].astype(np.float32, copy=False), file["subject_id"]
