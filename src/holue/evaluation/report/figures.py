"""Figures: rejection curves, score histograms, DET curve, reliability diagram and decisions of an evaluation."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from holue.evaluation.columns import FloatArray
from holue.evaluation.comparison.results import CURVE_METRICS, REFERENCES, PointResult, Results
from holue.evaluation.deployment.three_way import ThreeWay
from holue.evaluation.intervals.estimates import BINS
from holue.evaluation.metrics.calibration_error import reliability_diagram
from holue.evaluation.metrics.undefined import UndefinedMetricWarning
from holue.evaluation.report.displays import (
    CURVE_STYLES,
    DetCurveDisplay,
    RejectionCurveDisplay,
    ScoreHistogramDisplay,
)
from holue.evaluation.report.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    Drawing,
    look,
    new_figure,
)

SHOWN = 4
"""Methods in a panel; with blind filtering and the oracle these are six curves."""
FEWEST_IN_BIN = 40
"""Of a reliability diagram: the share of fewer answers says little."""
PALE = "#D9D9D9"
KINDS = (
    ("accepted_right", "accepted, right", BLUE),
    ("rejected_right", "rejected, right", SKY),
    ("misidentifications", "misidentified", PURPLE),
    ("false_acceptances", "stranger accepted", VERMILLION),
    ("false_rejections", "enrolled rejected", ORANGE),
    ("filtered_wrong", "filtered, would be wrong", GREEN),
    ("filtered_right", "filtered, would be right", PALE),
)
"""What becomes of a probe, as the bars show it: field of the counts, label, colour."""
TITLES = {
    "f1": "F1 (higher is better)",
    "fpir": "FPIR (lower is better)",
    "fnir": "FNIR (lower is better)",
    "misidentifications": "Misidentifications left (lower is better)",
}


def all_figures(results: Results) -> list[Drawing]:
    """Every figure of an evaluation; those per operating point carry its FPIR in their name."""
    per_point = [draw(results, point) for point in results.points for draw in (rejection_curves, reliability)]
    whole = (score_histograms(results), det_curve(results), three_way_figure(results))
    return [figure for figure in (*per_point, *whole) if figure is not None]


def page_panels(results: Results) -> list[Drawing]:
    """The panels of the rejection curves one by one, for a page: a narrow one shows them below each other."""
    return [_panel(results, point, metric) for point in results.points for metric in CURVE_METRICS]


def shown_methods(results: Results) -> list[str]:
    """Keys of the methods that are drawn: the best by PRR of F1 over all operating points, no two with the same curve."""
    ratios = {
        method.key: [value for point in results.points if (value := point.of(method.key).prr.value) is not None]
        for method in results.methods
    }
    order = sorted(ratios, key=lambda key: -float(np.mean(ratios[key])) if ratios[key] else np.inf)
    shown: list[str] = []
    for key in order:
        if all(key in point.curves["f1"] and not _repeats(point, key, shown) for point in results.points):
            shown.append(key)
    return shown[:SHOWN]


def _styles(results: Results, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Methods → the styles of their rejection curves; methods without a curve get styles of no curve first, then those left."""
    of = dict(zip(shown_methods(results), CURVE_STYLES))
    left = cycle([*CURVE_STYLES[len(of) :], *(style for key, style in of.items() if key not in keys)])
    return {key: of[key] if key in of else next(left) for key in keys}


def rejection_curves(results: Results, point: PointResult) -> Drawing:
    """The paper's Figure 2: four metrics against the filtered fraction, with random and oracle."""
    name = f"rejection_curves_fpir_{point.target_fpir:g}"
    with look(name):
        figure, axes = new_figure(9, 7.6, 2, 2)
        for ax, metric in zip(axes.flat, CURVE_METRICS):
            _draw_curves(ax, results, point, metric)
            ax.set_title(TITLES[metric], pad=12)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=3.4)
        figure.suptitle(_heading(results, f"FPIR {point.target_fpir:g}"), x=0.01, ha="left", fontsize=11)
    return Drawing(name, _curve_caption(results, point), figure)


def _panel(results: Results, point: PointResult, metric: str) -> Drawing:
    name = f"rejection_{metric}_fpir_{point.target_fpir:g}"
    with look(name):
        figure, ax = new_figure(4.9, 4.1)
        _draw_curves(ax, results, point, metric)
        ax.set_title(f"{TITLES[metric]}, FPIR {point.target_fpir:g}", fontsize=10)
        figure.legend(loc="outside lower center", ncols=2, handlelength=3.4, fontsize=9)
    caption = _curve_caption(results, point) if metric == CURVE_METRICS[0] else ""
    return Drawing(name, caption, figure)


def _draw_curves(ax: Any, results: Results, point: PointResult, metric: str) -> None:
    curves, names = point.curves[metric], {method.key: method.name for method in results.methods}
    references = {name: curves[name] for name in REFERENCES if name in curves}
    drawn = shown_methods(results)
    for key, style in zip(drawn, CURVE_STYLES):
        # With the last method, so that the legend has them last.
        beside = references if key == drawn[-1] else {}
        RejectionCurveDisplay(metric, point.fractions, curves[key], beside, names[key]).plot(ax, **style)
    ax.set_ylabel("")
    ax.set_xlim(0, results.settings.max_rejection)
    if metric != "f1":
        highest = _highest(curves[key] for key in (*drawn, *references))
        ax.set_ylim(0, max(1.05 * highest, 0.01 if metric != "misidentifications" else 1))
        if highest == 0:
            ax.text(0.5, 0.5, "none to filter", transform=ax.transAxes, ha="center", color=GREY)


def _repeats(point: PointResult, key: str, others: Iterable[str]) -> bool:
    return any(
        all(np.array_equal(curves[key], curves[other], equal_nan=True) for curves in point.curves.values())
        for other in others
    )


def score_histograms(results: Results) -> Drawing:
    """Best scores of mated and non-mated probes, with the threshold of every operating point."""
    name = "score_histograms"
    with look(name):
        figure, ax = new_figure(5.4, 3.9)
        ScoreHistogramDisplay.from_predictions(results.best_score, mated=results.points[0].outcomes.mated, ax=ax)
        height = 1.3 * ax.get_ylim()[1]
        ax.set_ylim(0, height)
        low, high = ax.get_xlim()
        # The leftmost line is the tallest, so that no label is crossed by a line to its right.
        for i, point in enumerate(sorted(results.points, key=lambda point: point.point.threshold)):
            threshold, top = point.point.threshold, max(0.96 - 0.075 * i, 0.4)
            ax.axvline(threshold, ymax=top, color=BLACK, linewidth=1, linestyle="--")
            is_right = threshold > low + 0.7 * (high - low)
            ax.annotate(
                f"τ at FPIR {point.target_fpir:g}",
                (threshold, top * height),
                xytext=(-4 if is_right else 4, 0),
                textcoords="offset points",
                ha="right" if is_right else "left",
                va="top",
                fontsize=9,
            )
        # Outside: inside, it would cover the name of a threshold sooner or later.
        figure.legend(loc="outside lower center", ncols=2)
        ax.set_title(_heading(results), fontsize=10)
    caption = (
        "Best score of each probe. Non-mated probes right of a threshold are false acceptances, mated probes left of it false "
        "rejections: where the two heaps overlap, scores alone cannot decide."
    )
    return Drawing(name, caption, figure)


def det_curve(results: Results) -> Drawing:
    """FNIR against FPIR as the threshold moves, with the operating points."""
    name = "det_curve"
    outcomes = results.points[0].outcomes
    reached = [
        (f"target {point.target_fpir:g}", point.recognition["fpir"].value, point.recognition["fnir"].value)
        for point in results.points
    ]
    with look(name), warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        figure, ax = new_figure(5.2, 4.4)
        display = DetCurveDisplay.from_predictions(
            results.best_score, mated=outcomes.mated, correct_subject=outcomes.correct_subject, ax=ax
        )
        display.mark([(label, fpir, fnir) for label, fpir, fnir in reached if fpir and fnir is not None])
        if ax.get_legend_handles_labels()[1]:
            figure.legend(loc="outside lower center", ncols=3, title="threshold for FPIR", fontsize=9)
        ax.set_title(_heading(results), fontsize=10)
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
    styles = _styles(results, [result.method.key for result in judged])
    with look(name):
        figure, ax = new_figure(5.6, 5.4)
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (1, 2)), label="perfect")
        for result in judged:
            assert result.quality is not None
            probability = np.clip(result.quality, 0.0, 1.0)
            diagram = reliability_diagram(probability, correct=point.outcomes.correct, bins=BINS).pooled(FEWEST_IN_BIN)
            style = {**styles[result.method.key], "linewidth": 1.4}
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


def three_way_figure(results: Results) -> Drawing | None:
    """A bar for each certified target, and one without a filter; None where there is no study."""
    study = results.trust
    if study is None or study.unfiltered is None:
        return None
    # Targets that filter the same answers share a bar.
    labels: dict[ThreeWay, list[str]] = {study.unfiltered: ["nothing filtered"]}
    for one in study.reports:
        if one.certificate is not None:
            labels.setdefault(one.three_way, []).append(f"at most {one.target_level:g}")
    bars = [("\n".join(some), ways) for ways, some in labels.items()]
    name = "three_way"
    with look(name):
        figure, ax = new_figure(5.6, 2.2 + 0.35 * len(bars) + 0.15 * sum(len(some) for some in labels.values()))
        names = [label for label, _ in bars]
        left = [0.0] * len(bars)
        for kind, label, color in KINDS:
            share = [getattr(ways, kind) / ways.total for _, ways in bars]
            ax.barh(names, share, left=left, label=label, color=color, height=0.62)
            left = [start + width for start, width in zip(left, share)]
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        ax.set_xlabel("share of the evaluation probes")
        ax.grid(axis="y", visible=False)
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    caption = (
        "What becomes of the evaluation probes: decided and right, decided and wrong in one of three ways, or filtered, split by "
        "what the answer would have been."
    )
    return Drawing(name, caption, figure)


def _curve_caption(results: Results, point: PointResult) -> str:
    start = (
        f"Filtering the least reliable probes first, at FPIR {point.target_fpir:g}. All methods start from the same decisions; "
        "the nearer a curve is to the oracle, the better it finds the errors."
    )
    ranked = point.ranked
    if not ranked:
        return f"{start} There is nothing to find here: no method can be ranked."
    shown = shown_methods(results)
    left_out = [method.name for method in results.methods if method.key not in shown]
    rest = f" Not drawn, but in the table: {', '.join(left_out)}." if left_out else ""
    return f"{start} {ranked[0].method.name} is nearest in F1 (PRR {ranked[0].prr.value:.2f}).{rest}"


def _heading(results: Results, rest: str = "") -> str:
    lines = [f"{results.protocol.name}{', ' if rest else ''}{rest}", results.settings.label]
    return "\n".join(lines)


def _with_error(name: str, error: Any) -> str:
    return name if error is None or error.value is None else f"{name} (ECE {error.value:.3f})"


def _highest(curves: Iterable[FloatArray]) -> float:
    return max((float(np.nanmax(values)) for values in curves if not np.isnan(values).all()), default=0.0)
