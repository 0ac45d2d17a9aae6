"""The report in a window of a telephone and of a desk: nothing is cut, whatever the samples are called."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holue.bench.sections.evaluation import simulated_protocol
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.report.report import write_report

BEYOND_A_BOX = """
() => [...document.querySelectorAll("main *")].filter(one => {
  const box = one.closest(".scroll, figure, pre"), frame = (box ?? document.documentElement).getBoundingClientRect();
  return one !== box && !one.closest("svg") && one.getBoundingClientRect().right > Math.ceil(frame.right);
}).map(one => one.textContent.trim().slice(0, 60))
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    people = {"n_subjects": 30, "n_strangers": 30}
    protocol = simulated_protocol(development=people, evaluation=people, dim=32, concentration=30.0, look_alike_pairs=4)
    part = protocol.evaluation
    names = np.array([f"Maria_Soledad_Alvear/Maria_Soledad_Alvear_{row:04}.jpg" for row in range(len(part.probes))])
    named = replace(protocol, evaluation=replace(part, probe_samples=names))
    results = evaluate(named, fpir=(0.1, 0.2), methods=["galue", "acceptance"], n_resamples=20)
    folder: Path = write_report(results, tmp_path_factory.mktemp("window") / "report")
    return (folder / "report.html").as_uri()


@pytest.mark.parametrize("width", [400, 1280])
def test_no_text_of_a_report_lies_beyond_its_box(chromium: Any, address: str, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 900})
    page.goto(address)
    assert page.get_by_text("Maria_Soledad_Alvear/Maria").count() > 5
    assert page.evaluate(BEYOND_A_BOX) == []
    page.close()
