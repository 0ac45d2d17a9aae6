"""Demo: a scene with everything that is told about it, and the folder it is written to.

OUT/report.html     one self-contained page: a picture per probe, curves, morphs
OUT/results.json    every number on it
OUT/figures/        .png, .svg
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holue.artifact import whole_folder
from holue.datasets.glyphs.model import glyph_embedder
from holue.demo.curves import Curves, draw_curves, rejection_curves
from holue.demo.groups import ProbeGroup, probe_groups
from holue.demo.page import demo_page
from holue.demo.passage_figures import draw_means, draw_passage
from holue.demo.passages import Passages, passages
from holue.demo.scene import SUBJECTS, Embed, Scene, make_scene
from holue.errors import MissingDependencyError
from holue.evaluation.paper.figures import draw_toy_world
from holue.evaluation.paper.toy_world import ToyWorld, toy_world
from holue.evaluation.report.drawing import Drawing
from holue.evaluation.report.result_folder import RESULTS_FILE, check_result_folder

FORMAT, VERSION = "holue-demo", 1
EXTRA = "demo"
NEEDED = {"matplotlib": "matplotlib", "PIL": "pillow", "onnxruntime": "onnxruntime", "jinja2": "jinja2"}
"""Modules and the packages that bring them."""
PAGE = "report.html"

Step = Callable[[str], object]
"""Is told what begins."""


@dataclass(frozen=True, eq=False)
class Demo:
    """What the terminal and the page tell."""

    scene: Scene
    groups: list[ProbeGroup]
    curves: Curves
    passages: Passages
    toy_world: ToyWorld

    @cached_property
    def drawings(self) -> dict[str, Drawing]:
        """Every figure by its name."""
        ways = self.passages
        morphs = [draw_passage(passage, ways.position, i) for i, passage in enumerate(ways.shown, start=1)]
        means = [draw_means(ways)] if ways.all else []
        return {d.name: d for d in (draw_curves(self.curves), *morphs, *means, draw_toy_world(self.toy_world))}

    def document(self) -> dict[str, Any]:
        """Every number on the page, as plain values for JSON."""
        scene = self.scene
        point, counts = scene.reading.point, scene.outcomes.counts
        return {
            "format": FORMAT,
            "version": VERSION,
            "seed": scene.seed,
            "method": scene.recognizer.method,
            "temperature": scene.recognizer.temperature,
            "enrolled": len(scene.part.known),
            "calibration_enrolled": len(scene.world.development.known),
            "probes": {"mated": counts.mated, "non_mated": counts.non_mated},
            "operating_point": {
                "threshold": point.threshold,
                "concentration": point.concentration,
                "unknown_prior": point.unknown_prior,
                "target_fpir": point.target_fpir,
                "calibration_fpir": point.achieved_fpir,
                "fpir": counts.false_acceptances / counts.non_mated,
                "fnir": counts.false_negatives / counts.mated,
            },
            "error_rate": scene.error_rates,
            "groups": {group.key: {"answers": len(group.rows), "wrong": group.wrong} for group in self.groups},
            "rejection": self.curves.document(),
            "morphs": self.passages.document(),
            "toy_world": self.toy_world.document(),
            "answers": {
                "sample_id": scene.part.probes.sample_id.tolist(),
                "truth": [
                    str(label) if mated else None
                    for label, mated in zip(scene.part.probes.subject_id, scene.outcomes.mated)
                ],
                "right": scene.outcomes.correct.tolist(),
                "concentration": scene.concentrations.tolist(),
                "p_answer": scene.p_answer.tolist(),
                **scene.answers.to_dict(),
            },
        }

    def write(self, folder: str | Path) -> Path:
        """Write the folder, all or nothing; an earlier demo there is replaced, anything else is refused. Returns the page."""
        folder = Path(folder)
        check_demo_folder(folder)
        with whole_folder(folder) as partial:
            figures = partial / "figures"
            figures.mkdir()
            for drawing in self.drawings.values():
                drawing.save(figures)
            text = json.dumps(self.document(), indent=1, allow_nan=False, ensure_ascii=False)
            (partial / RESULTS_FILE).write_text(text + "\n", "utf-8")
            page = demo_page(self.scene, self.groups, self.curves, self.passages, self.drawings)
            (partial / PAGE).write_text(page, "utf-8")
        return folder / PAGE


def make_demo(
    embed: Embed | None = None, *, seed: int = 0, subjects: int = SUBJECTS, step: Step = lambda what: None
) -> Demo:
    """Render the glyph world, recognise in it, and work out everything that is told; the same for the same seed.

    ``embed`` replaces the model that comes with the package.
    """
    step("Rendering, enrolling, calibrating and identifying …")
    scene = make_scene(embed or glyph_embedder().embed, seed=seed, subjects=subjects)
    step("Comparing methods, and turning characters into one another …")
    return Demo(scene, probe_groups(scene), rejection_curves(scene), passages(scene), toy_world())


def check_demo_folder(folder: str | Path) -> None:
    """Refuse a folder that is neither new, nor empty, nor an earlier demo."""
    check_result_folder(Path(folder), format=FORMAT, what="demo")


def require_extra() -> None:
    """Say at once, and not after half of the work, that a package of the extra is missing."""
    for module, package in NEEDED.items():
        if find_spec(module) is None:
            raise MissingDependencyError(package, EXTRA)
