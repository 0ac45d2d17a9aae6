"""Displays draw the numbers of the metrics, on any axes, and no two curves of a panel look alike."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from holue.bench.sections.evaluation import simulated_protocol
from holue.evaluation import (
    DetCurveDisplay,
    RejectionCurveDisplay,
    ReliabilityDisplay,
    ScoreHistogramDisplay,
    reliability_diagram,
)
from holue.evaluation.comparison.results import Results
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.metrics.rejection import rejection_curve
from holue.evaluation.metrics.tradeoff import det_points
from holue.evaluation.report.figures import SHOWN, det_curve, page_panels, rejection_curves, reliability, shown_methods

RNG = np.random.default_rng(0)
MATED, ACCEPTED, RIGHT = RNG.random((3, 200)) < 0.7
FLAGS = {"mated": MATED, "accepted": ACCEPTED, "correct_subject": RIGHT}
QUALITY = RNG.random(200)


@pytest.fixture(scope="module")
def results() -> Results:
    people = {"n_subjects": 40, "n_strangers": 40}
    protocol = simulated_protocol(development=people, evaluation=people, dim=32, concentration=30.0, look_alike_pairs=6)
    methods = ["scf", "acceptance", "galue", "galue-entropy", "holue-sum", "holue-closed"]
    return evaluate(protocol, fpir=(0.05, 0.2), methods=methods, n_resamples=20)


def looks(ax):
    """Colour and dash of every line."""
    return [(to_hex(line.get_color()), str(line._unscaled_dash_pattern)) for line in ax.get_lines()]


def test_a_rejection_display_draws_the_curve_of_the_metric_on_the_axes_given() -> None:
    ax = Figure().subplots()
    display = RejectionCurveDisplay.from_predictions(QUALITY, **FLAGS, metric="fnir", name="mine", ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    np.testing.assert_array_equal(drawn["mine"], rejection_curve(QUALITY, **FLAGS, metric="fnir").values)
    assert set(drawn) == {"mine", "random", "oracle"}


def test_displays_on_one_panel_share_the_references_and_differ_in_colour_and_dash() -> None:
    ax = Figure().subplots()
    for i in range(SHOWN):
        RejectionCurveDisplay.from_predictions(RNG.random(200), **FLAGS, name=f"method {i}", ax=ax)
    assert len(ax.get_lines()) == SHOWN + 2
    colours, dashes = zip(*looks(ax))
    assert len(set(colours)) == SHOWN + 2
    assert len({dash for dash, line in zip(dashes, ax.get_lines()) if line.get_label() != "oracle"}) == SHOWN + 1


def test_a_det_display_draws_the_trade_off() -> None:
    display = DetCurveDisplay.from_predictions(QUALITY, mated=MATED, correct_subject=RIGHT)
    curve = det_points(QUALITY, mated=MATED, correct_subject=RIGHT)
    np.testing.assert_array_equal(display.ax_.get_lines()[0].get_xdata(), curve.fpir[curve.fpir > 0])


def test_a_histogram_display_counts_both_kinds() -> None:
    labels = ScoreHistogramDisplay.from_predictions(QUALITY, mated=MATED).ax_.get_legend_handles_labels()[1]
    assert labels == [f"non-mated ({(~MATED).sum()})", f"mated ({MATED.sum()})"]


def test_a_reliability_display_draws_the_diagram() -> None:
    display = ReliabilityDisplay.from_predictions(QUALITY, correct=RIGHT, bins=5)
    diagram = reliability_diagram(QUALITY, correct=RIGHT, bins=5)
    np.testing.assert_array_equal(display.ax_.get_lines()[-1].get_ydata(), diagram.observed)


def test_a_panel_has_at_most_six_curves_and_they_are_those_of_the_best_methods(results: Results) -> None:
    drawing = rejection_curves(results, results.points[0])
    names = {method.key: method.name for method in results.methods}
    shown = shown_methods(results)
    assert len(shown) == SHOWN < len(results.methods)
    for ax in drawing.figure.axes:
        assert [line.get_label() for line in ax.get_lines()] == [*(names[key] for key in shown), "random", "oracle"]
    left_out = [method.name for method in results.methods if method.key not in shown]
    assert all(name in drawing.caption for name in left_out)
    assert len(page_panels(results)) == 4 * len(results.points)


def test_a_method_has_one_colour_and_dash_in_the_curves_and_in_the_reliability_diagram(results: Results) -> None:
    def looks(drawing):
        lines = drawing.figure.axes[0].get_lines()
        return {line.get_label().split(" (")[0]: (line.get_color(), str(line.get_linestyle())) for line in lines}

    curves, diagram = (
        looks(rejection_curves(results, results.points[0])),
        looks(reliability(results, results.points[0])),
    )
    both = curves.keys() & diagram.keys()
    assert both
    assert {name: curves[name] for name in both} == {name: diagram[name] for name in both}
    assert len({color for color, _ in diagram.values()}) == len(diagram)


def test_two_methods_with_the_same_curves_are_drawn_once(results: Results) -> None:
    def alike(point):
        curves = {metric: {**some, "galue": some["acceptance"]} for metric, some in point.curves.items()}
        return replace(point, curves=curves)

    shown = shown_methods(replace(results, points=tuple(alike(point) for point in results.points)))
    assert len({"galue", "acceptance"} & set(shown)) <= 1


def test_operating_points_of_the_trade_off_are_named_by_the_legend(results: Results) -> None:
    figure = det_curve(results).figure
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["target 0.05", "target 0.2"]
    assert not figure.axes[0].texts, "no label on the curve, so none overprints another"
