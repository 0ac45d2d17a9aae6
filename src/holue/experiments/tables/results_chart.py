"""Results charts: all experiments at a glance, by their ratios, their rejection curves and the FPIR that they reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holue.evaluation.report.displays import CURVE_STYLES, MARKERS, REFERENCE_STYLES
from holue.evaluation.report.drawing import GREY, Drawing, look, new_figure
from holue.experiments.experiment import HELD_BY_MODEL, MAIN

Document = Mapping[str, Any]
DRAWN = ("holue-plus", "holue-f1", "holue", "galue", "acceptance", "scf")
"""Methods of the chart: ours, and the best known of the paper's."""
TITLES = {"prr_f1": "PRR of F1", "prr_accuracy": "PRR of accuracy"}


def results_charts(documents: Sequence[Document]) -> list[Drawing]:
    """The ratios of F1 and of accuracy, the rejection curves of F1, and the FPIR that was reached where runs have it."""
    held = [document for document in documents if _variant(document, HELD_BY_MODEL) is not None]
    charts = [*(_ratios(documents, measure) for measure in TITLES), _curves(documents)]
    return [*charts, _reached(held)] if held else charts


def _ratios(documents: Sequence[Document], measure: str) -> Drawing:
    """A row for each data set and FPIR, a marker for each method."""
    rows = [(document, point) for document in documents for point in _main(document)["operating_points"]]
    names = {key: name for document in documents for key, name in _main(document)["methods"].items() if key in DRAWN}
    name = f"results-{measure}"
    with look(name):
        figure, ax = new_figure(5.4, 1.6 + 0.42 * len(rows))
        for i, key in enumerate(key for key in DRAWN if key in names):
            # A little apart, so that intervals of one row can be told from each other.
            places = [row + 0.11 * (i - len(names) / 2 + 0.5) for row in range(len(rows))]
            found = [(place, point[measure][key]) for place, (_, point) in zip(places, rows) if key in point[measure]]
            known = [(place, number) for place, number in found if number["value"] is not None]
            ax.errorbar(
                [number["value"] for _, number in known],
                [place for place, _ in known],
                xerr=[
                    [number["value"] - (number["low"] or number["value"]) for _, number in known],
                    [(number["high"] or number["value"]) - number["value"] for _, number in known],
                ],
                fmt=MARKERS[i],
                color=CURVE_STYLES[i]["color"],
                markersize=5,
                elinewidth=1,
                label=names[key],
            )
        ax.set_yticks(range(len(rows)), [f"{document['name']}, {point['target_fpir']:g}" for document, point in rows])
        ax.invert_yaxis()
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_xlabel(f"{TITLES[measure]} (1 is a perfect filter, 0 blind filtering)")
        figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    caption = f"{TITLES[measure]} by data set and target FPIR, means over seeds with 95 % intervals over subjects."
    return Drawing(name, caption, figure)


def _curves(documents: Sequence[Document]) -> Drawing:
    """A panel for each data set: F1 of what is left as probes are filtered, at the middle FPIR."""
    name, columns = "results-curves", min(2, len(documents))
    rows = -(-len(documents) // columns)
    with look(name):
        figure, axes = new_figure(4.4 * columns, 3.1 * rows + 0.6, rows, columns)
        panels = np.atleast_1d(axes).ravel()
        for ax, document in zip(panels, documents):
            points = _main(document)["operating_points"]
            point = points[len(points) // 2]
            curves, names = point["rejection_curves"], _main(document)["methods"]
            drawn = {
                names[key]: (curves["f1"][key], style)
                for key, style in zip(DRAWN, CURVE_STYLES)
                if key in names and key in curves["f1"]
            }
            drawn |= {key: (curves["f1"][key], style) for key, style in REFERENCE_STYLES.items()}
            for label, (values, style) in drawn.items():
                ax.plot(curves["filtered_fraction"], np.array(values, dtype=float), label=label, **style)
            ax.set_title(f"{document['name']}, FPIR {point['target_fpir']:g}")
            ax.set_xlabel("filtered fraction of probes")
            ax.set_ylabel("F1 of the others")
            ax.set_xlim(0, 0.5)
        for ax in panels[len(documents) :]:
            ax.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, handlelength=3.4, fontsize=9)
    return Drawing(
        name, "F1 of the answers that are left as the most uncertain are filtered, means over seeds.", figure
    )


def _reached(documents: Sequence[Document]) -> Drawing:
    """Reached FPIR over its target, on logarithmic axes, for either way of moving the threshold."""
    name = "results-fpir"
    ways = {MAIN: ('hold="fpir"', "o"), HELD_BY_MODEL: ("the paper's model", "s")}
    with look(name):
        figure, ax = new_figure(5.4, 1.8 + 0.55 * len(documents))
        targets = sorted({point["target_fpir"] for one in documents for point in _main(one)["operating_points"]})
        for i, target in enumerate(targets):
            ax.axvline(target, color=CURVE_STYLES[i % len(CURVE_STYLES)]["color"], linewidth=0.8, linestyle=(0, (4, 2)))
        for at, (key, (label, marker)) in enumerate(ways.items()):
            for i, target in enumerate(targets):
                found = [
                    (row + 0.24 * (at - 0.5), point["recognition"]["fpir"])
                    for row, document in enumerate(documents)
                    for point in (_variant(document, key) or {"operating_points": []})["operating_points"]
                    if point["target_fpir"] == target
                ]
                values = [number["value"] for _, number in found]
                ax.errorbar(
                    values,
                    [row for row, _ in found],
                    xerr=[
                        [number["value"] - number["low"] for _, number in found],
                        [number["high"] - number["value"] for _, number in found],
                    ],
                    fmt=marker,
                    color=CURVE_STYLES[i % len(CURVE_STYLES)]["color"],
                    markerfacecolor="white" if at else None,
                    markersize=5,
                    elinewidth=1,
                    label=label if i == 0 else None,
                )
        ax.set_yticks(range(len(documents)), [document["name"] for document in documents])
        ax.set_ylim(len(documents) - 0.5, -0.5)
        ax.set_xscale("log")
        ticks = sorted({*targets, *(1.5 * target for target in targets)})
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_xlabel("FPIR on people of the evaluation part (dashed: its target)")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    caption = (
        'FPIR that is reached in the larger evaluation gallery, by hold="fpir" (filled) and by the paper\'s model (open), with '
        "95 % intervals over subjects."
    )
    return Drawing(name, caption, figure)


def _main(document: Document) -> Document:
    found = _variant(document, MAIN)
    assert found is not None
    return found


def _variant(document: Document, name: str) -> Document | None:
    return next((variant for variant in document["variants"] if variant["variant"] == name), None)
