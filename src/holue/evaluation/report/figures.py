"""Figures: rejection curves, score histograms, DET curve and reliability diagram of an evaluation."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from holue.evaluation.columns import FloatArray
from holue.evaluation.comparison.results import CURVE_METRICS, PointResult, Results
from holue.evaluation.intervals.estimates import BINS
from holue.evaluation.metrics.calibration_error import reliability_diagram
from holue.evaluation.metrics.tradeoff import det_points
from holue.evaluation.metrics.undefined import UndefinedMetricWarning
from holue.evaluation.report.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,
    Drawing,
    look,
    new_figure,
)

# Families share a line style: sample quality dotted, gallery dashed, holistic solid.
STYLES: dict[str, dict[str, Any]] = {
    "pfe": {"color": YELLOW, "linestyle": ":"},
    "scf": {"color": ORANGE, "linestyle": ":"},
    "sf": {"color": PURPLE, "linestyle": ":"},
    "own-quality": {"color": GREY, "linestyle": ":"},
    "acceptance": {"color": GREEN, "linestyle": "--"},
    "galue": {"color": BLUE, "linestyle": "--"},
    "galue-entropy": {"color": SKY, "linestyle": "--"},
    "holue-sum": {"color": ORANGE},
    "holue": {"color": VERMILLION, "linewidth": 2.6},
    "holue-mc": {"color": PURPLE},
    "holue-closed": {"color": SKY},
    "holue-plus": {"color": GREEN, "linewidth": 2.2},
    "holue-f1": {"color": BLUE},
    "random": {"color": GREY, "linestyle": (0, (1, 2)), "linewidth": 1.2},
    "oracle": {"color": BLACK, "linestyle": "-.", "linewidth": 1.2},
}
FEWEST_IN_BIN = 40
"""Of a reliability diagram: the share of fewer answers says little."""
OTHER: dict[str, Any] = {"color": "#999933", "linestyle": ":"}
TITLES = {
    "f1": "F1 (higher is better)",
    "fpir": "FPIR (lower is better)",
    "fnir": "FNIR (lower is better)",
    "misidentifications": "Misidentifications left (lower is better)",
}


def all_figures(results: Results) -> list[Drawing]:
    """Every figure of an evaluation; those per operating point carry its FPIR in their name."""
    per_point = [draw(results, point) for point in results.points for draw in (rejection_curves, reliability)]
    return [figure for figure in (*per_point, score_histograms(results), det_curve(results)) if figure is not None]


def rejection_curves(results: Results, point: PointResult) -> Drawing:
    """The paper's Figure 2: four metrics against the filtered fraction, with random and oracle."""
    name = f"rejection_curves_fpir_{point.target_fpir:g}"
    names = {method.key: method.name for method in results.methods} | {"random": "random", "oracle": "oracle"}
    with look(name):
        figure, axes = new_figure(9, 7.8, 2, 2)
        for ax, metric in zip(axes.flat, CURVE_METRICS):
            for key, values in point.curves[metric].items():
                ax.plot(point.fractions, values, label=names[key], **STYLES.get(key, OTHER))
            ax.set_title(TITLES[metric], pad=12)
            ax.set_xlabel("filtered fraction of probes")
            ax.set_xlim(0, results.settings.max_rejection)
            if metric != "f1":
                ax.set_ylim(
                    0,
                    max(1.05 * _highest(point.curves[metric].values()), 0.01 if metric != "misidentifications" else 1),
                )
                if _highest(point.curves[metric].values()) == 0:
                    ax.text(0.5, 0.5, "none to filter", transform=ax.transAxes, ha="center", color=GREY)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)), handlelength=2.6)
        figure.suptitle(_heading(results, f"FPIR {point.target_fpir:g}"), x=0.01, ha="left", fontsize=11)
    return Drawing(name, _curve_caption(point), figure)


def score_histograms(results: Results) -> Drawing:
    """Best scores of mated and non-mated probes, with the threshold of every operating point."""
    name = "score_histograms"
    outcomes = results.points[0].outcomes
    scores, mated = results.best_score, outcomes.mated
    with look(name):
        figure, ax = new_figure(8, 4)
        edges = np.linspace(scores.min(), max(scores.max(), scores.min() + 1e-6), 61)
        for of, label, color in ((~mated, "non-mated", ORANGE), (mated, "mated", BLUE)):
            ax.hist(scores[of], edges, density=True, color=color, alpha=0.55, label=f"{label} ({of.sum()})")
        height = 1.3 * ax.get_ylim()[1]
        ax.set_ylim(0, height)
        # The leftmost line is the tallest, so that no label is crossed by a line to its right.
        for i, point in enumerate(sorted(results.points, key=lambda point: point.point.threshold)):
            top = max(0.96 - 0.065 * i, 0.5)
            ax.axvline(point.point.threshold, ymax=top, color=BLACK, linewidth=1, linestyle="--")
            ax.annotate(
                f"τ at FPIR {point.target_fpir:g}",
                (point.point.threshold, top * height),
                xytext=(4, 0),
                textcoords="offset points",
                va="top",
                fontsize=9,
            )
        ax.set_xlabel("best cosine of a probe to the gallery")
        ax.set_ylabel("density")
        # Outside: inside, it would cover the name of a threshold sooner or later.
        figure.legend(loc="outside lower center", ncols=2)
        ax.set_title(_heading(results))
    caption = (
        "Best score of each probe. Non-mated probes right of a threshold are false acceptances, mated probes left of it false "
        "rejections: where the two heaps overlap, scores alone cannot decide."
    )
    return Drawing(name, caption, figure)


def det_curve(results: Results) -> Drawing:
    """FNIR against FPIR as the threshold moves, with the operating points."""
    name = "det_curve"
    outcomes = results.points[0].outcomes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        curve = det_points(results.best_score, mated=outcomes.mated, correct_subject=outcomes.correct_subject)
    shown = curve.fpir > 0
    with look(name):
        figure, ax = new_figure(6, 4.4)
        ax.plot(curve.fpir[shown], curve.fnir[shown], color=BLUE)
        for point in results.points:
            reached = point.recognition["fpir"].value, point.recognition["fnir"].value
            if None in reached or reached[0] == 0:
                continue
            ax.plot(*reached, "o", color=VERMILLION)
            ax.annotate(f"target {point.target_fpir:g}", reached, xytext=(5, 6), textcoords="offset points", fontsize=9)
        ax.set_xscale("log")
        if (curve.fnir[shown] > 0).all():
            ax.set_yscale("log")
            _plain_ticks(ax.yaxis)
        _plain_ticks(ax.xaxis)
        ax.set_xlabel("FPIR: share of strangers accepted")
        ax.set_ylabel("FNIR: share of mated probes missed")
        ax.set_title(_heading(results))
    caption = (
        "Detection error trade-off on the evaluation part. A point left or right of its target FPIR shows how far the "
        "threshold carries from development to evaluation people."
        if not results.settings.is_oracle
        else "Detection error trade-off on the evaluation part. The points meet their targets because the threshold was chosen "
        "on these very labels."
    )
    return Drawing(name, caption, figure)


def reliability(results: Results, point: PointResult) -> Drawing | None:
    """Share of right answers against P(correct); None where no method gives probabilities."""
    name = f"reliability_fpir_{point.target_fpir:g}"
    judged = [result for result in point.methods if result.method.is_probability and result.quality is not None]
    if not judged:
        return None
    with look(name):
        figure, ax = new_figure(5.6, 5.4)
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (1, 2)), label="perfect")
        for result in judged:
            assert result.quality is not None
            probability = np.clip(result.quality, 0.0, 1.0)
            diagram = reliability_diagram(probability, correct=point.outcomes.correct, bins=BINS).pooled(FEWEST_IN_BIN)
            style = {**STYLES.get(result.method.key, OTHER), "linewidth": 1.4}
            reach = np.abs(diagram.intervals().T - diagram.observed)
            ax.errorbar(
                diagram.predicted, diagram.observed, reach, color=style["color"], fmt="none", elinewidth=0.9, alpha=0.6
            )
            ax.plot(
                diagram.predicted, diagram.observed, label=_with_error(result.method.name, result.calibration), **style
            )
            # The area of a dot is the share of the probes in its bin.
            size = 4 + 160 * diagram.count / diagram.count.sum()
            ax.scatter(diagram.predicted, diagram.observed, s=size, color=style["color"], zorder=3)
        ax.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="P(correct) of the method", ylabel="share of right answers")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        ax.set_title(_heading(results, f"FPIR {point.target_fpir:g}"), fontsize=10)
    caption = (
        f"Reliability at FPIR {point.target_fpir:g}: below the diagonal a method promises more than it keeps. Dots grow with the "
        f"number of probes in their bin, bins of fewer than {FEWEST_IN_BIN} are pooled with their neighbours, and bars are 95 % "
        "Wilson intervals; ECE is the mean distance to the diagonal."
    )
    return Drawing(name, caption, figure)


def _curve_caption(point: PointResult) -> str:
    start = (
        f"Filtering the least reliable probes first, at FPIR {point.target_fpir:g}. All methods start from the same decisions; "
        "the nearer a curve is to the oracle, the better it finds the errors."
    )
    ranked = point.ranked
    if not ranked:
        return f"{start} There is nothing to find here: no method can be ranked."
    return f"{start} {ranked[0].method.name} is nearest in F1 (PRR {ranked[0].prr.value:.2f})."


def _heading(results: Results, rest: str = "") -> str:
    lines = [f"{results.protocol.name}{', ' if rest else ''}{rest}", results.settings.label]
    return "\n".join(lines)


def _with_error(name: str, error: Any) -> str:
    return name if error is None or error.value is None else f"{name} (ECE {error.value:.3f})"


def _plain_ticks(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 300 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _highest(curves: Iterable[FloatArray]) -> float:
    return max((float(np.nanmax(values)) for values in curves if not np.isnan(values).all()), default=0.0)
