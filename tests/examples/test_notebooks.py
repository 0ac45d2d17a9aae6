"""The notebooks run from top to bottom, and are kept without outputs."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("pandas")

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]


def run(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """All that a notebook prints or shows when it is run in a folder."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    book = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(book, timeout=240, kernel_name="python3", resources={"metadata": {"path": folder}})
    client.execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs)


def test_there_are_two_notebooks() -> None:
    assert NAMES == ["quickstart", "your-own-data"]


def test_the_quickstart_filters_what_is_uncertain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(NOTEBOOKS[0], tmp_path, monkeypatch)
    assert "operating point: 100 subjects" in shown
    assert "same answers after loading: True" in shown
    wrong = [float(share) for share in re.findall(r"filtered, ([\d.]+)% of the others wrong", shown)]
    assert wrong == sorted(wrong, reverse=True)
    assert wrong[0] > wrong[-1]


def test_your_own_data_may_be_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = run(NOTEBOOKS[1], tmp_path, monkeypatch)
    assert "1200 samples of 240 subjects, 128 dimensions" in simulated
    assert "operating point: 240 subjects" in simulated


@pytest.mark.data
def test_your_own_data_runs_on_real_faces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real_faces: tuple[Any, Any]
) -> None:
    embeddings, subjects = real_faces
    _, code, counts = np.unique(subjects, return_inverse=True, return_counts=True)
    some = np.isin(code, np.flatnonzero((counts >= 2) & (counts <= 6))[:400])
    np.savez(tmp_path / "people.npz", embeddings=embeddings[some], subject_id=subjects[some])
    shown = run(NOTEBOOKS[1], tmp_path, monkeypatch)
    assert f"{some.sum()} samples of 400 subjects, 512 dimensions" in shown
    assert "operating point: 400 subjects" in shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_a_notebook_is_kept_without_outputs_and_small(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        assert not cell.get("outputs"), "clear the outputs before you save"
        assert cell.get("execution_count") is None
    assert path.stat().st_size < 20_000
