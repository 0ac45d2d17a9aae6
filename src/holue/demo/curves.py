"""Curves: how fast errors disappear when the least reliable answers are filtered, by three methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holue.demo.scene import METHOD, Scene
from holue.evaluation.metrics.rejection import PredictionRejection, prediction_rejection
from holue.evaluation.report.displays import CURVE_STYLES, REFERENCE_STYLES
from holue.evaluation.report.drawing import Drawing, look, new_figure
from holue.recognition.quality import SCORES

COMPARED = {METHOD: METHOD, "acceptance": "acceptance", "scf": "quality"}
"""Keys of the methods and the scores behind them."""
READS = {METHOD: "score, rivals and sample", "acceptance": "distance to the threshold", "scf": "sample alone"}
METRICS = ("error_rate", "f1")
MAX_REJECTION = 0.5


@dataclass(frozen=True, eq=False)
class Curves:
    """Prediction rejection of every method, by metric."""

    by_metric: dict[str, dict[str, PredictionRejection]]

    def document(self) -> dict[str, Any]:
        """Plain values for JSON; a ratio without a value is None, with its reason."""
        return {
            metric: {
                SCORES[COMPARED[key]].name: {
                    "prr": None if found.reason else found.ratio,
                    "reason": found.reason,
                    "at_fractions": found.curve.fractions[:: max(1, len(found.curve.fractions) // 50)].tolist(),
                    "values": _plain(found.curve.values[:: max(1, len(found.curve.fractions) // 50)]),
                }
                for key, found in methods.items()
            }
            for metric, methods in self.by_metric.items()
        }

    @property
    def table(self) -> list[tuple[str, str, str, str]]:
        """Method, what it reads, and its two ratios."""
        errors, f1 = (self.by_metric[metric] for metric in METRICS)
        return [(SCORES[COMPARED[key]].name, READS[key], _ratio(errors[key]), _ratio(f1[key])) for key in COMPARED]


def rejection_curves(scene: Scene) -> Curves:
    """HolUE-plus, AccScr and SCF on the demo's probes, all upon the same decisions."""
    fitted = {METHOD: scene.recognizer.quality_}
    quality = {key: fitted.get(key, SCORES[name]())(scene.reading) for key, name in COMPARED.items()}
    outcomes = scene.outcomes
    return Curves(
        {
            metric: {
                key: prediction_rejection(
                    values,
                    mated=outcomes.mated,
                    accepted=outcomes.accepted,
                    correct_subject=outcomes.correct_subject,
                    metric=metric,
                    max_rejection=MAX_REJECTION,
                )
                for key, values in quality.items()
            }
            for metric in METRICS
        }
    )


def draw_curves(curves: Curves) -> Drawing:
    """Wrong answers among those kept against the filtered share, with random and oracle."""
    name = "rejection_curves"
    found = curves.by_metric["error_rate"]
    first = found[METHOD]
    lines = {SCORES[COMPARED[key]].name: (found[key].curve, style) for key, style in zip(COMPARED, CURVE_STYLES)}
    lines |= {
        "random": (first.random, REFERENCE_STYLES["random"]),
        "oracle": (first.oracle, REFERENCE_STYLES["oracle"]),
    }
    with look(name):
        figure, ax = new_figure(5, 4)
        for label, (curve, style) in lines.items():
            ax.plot(100 * curve.fractions, 100 * curve.values, label=label, **style)
        ax.set(xlim=(0, 100 * MAX_REJECTION), ylim=(0, None))
        ax.set_xlabel("% of the answers filtered, the least reliable first")
        ax.set_ylabel("% wrong among the answers kept")
        figure.legend(
            loc="outside lower center", ncols=5, handlelength=1.8, columnspacing=0.9, fontsize=9, handletextpad=0.4
        )
    start, end = 100 * first.curve.values[0], 100 * first.curve.values[-1]
    caption = (
        f"Filtering half of the answers by {SCORES[METHOD].name} brings the errors from {start:.1f} % to {end:.1f} %; blind "
        f"filtering (random) leaves them at {start:.1f} %, and the oracle, which knows the truth, removes errors first."
    )
    return Drawing(name, caption, figure)


def _ratio(found: PredictionRejection) -> str:
    return "–" if found.reason else f"{found.ratio:.2f}"


def _plain(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]
