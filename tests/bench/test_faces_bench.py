"""The section about photographs measures where data and models are there, and says what is missing elsewhere."""

from dataclasses import replace
from pathlib import Path

import pytest

from holue.bench.page.page import speed_page
from holue.bench.page.table import as_text
from holue.bench.page.targets import verdicts
from holue.bench.sections.program import run
from holue.bench.worlds.sizes import Sizes
from holue.datasets.directory import data_directory
from holue.embedding.models.specification import models_directory

SIZES = replace(Sizes(), photographs=3)


def test_missing_photographs_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLUE_DATA", str(tmp_path))
    result = run(sections=["faces"], sizes=SIZES, rounds=1)
    assert "originals.zip" in result["faces"]["skipped"]
    for shown in (speed_page(result), as_text(result)):
        assert "Not measured: there are no photographs at" in shown
    assert verdicts(result) == []


@pytest.mark.data
def test_photographs_are_timed_step_by_step() -> None:
    pytest.importorskip("cv2")
    if not ((data_directory() / "lfw" / "originals.zip").exists() and (models_directory() / "yunet.onnx").exists()):
        pytest.skip("needs LFW's photographs, yunet and arcface; set HOLUE_DATA and HOLUE_MODELS")
    result = run(sections=["faces"], sizes=SIZES, rounds=1)
    small, large = result["faces"]["rows"]
    assert (small["count"], small["width"], large["width"]) == (3, 250, 4000)
    for row in (small, large):
        steps = [row[f"{name}_ms"] for name in ("decode", "find", "align", "embed")]
        assert min(steps) > 0
        assert row["total_ms"] >= max(steps)
    assert "## Whole photographs" in speed_page(result)
    assert [one.met for one in verdicts(result)] == [True, True, True]
