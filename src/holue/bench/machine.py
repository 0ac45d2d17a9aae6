"""Machine: what the numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGES = ("holue", "numpy", "numba", "faiss-cpu", "usearch")
_VECTORS = ("avx512f", "avx2", "avx", "sse4_2", "asimd")


def machine() -> dict[str, object]:
    """Processors, widest vector instructions, matrix library, and the versions of the packages measured."""
    return {
        "processors": os.cpu_count(),
        "architecture": platform.machine(),
        "vectors": _vectors(),
        "blas": _blas(),
        "python": platform.python_version(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
    }


def load() -> float | None:
    """Processes that want to run, on average over the last minute: a quiet machine has next to none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _vectors() -> str | None:
    info = Path("/proc/cpuinfo")
    words = set(info.read_text("utf-8").split()) if info.exists() else set()
    return next((name for name in _VECTORS if name in words), None)


def _blas() -> str:
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
