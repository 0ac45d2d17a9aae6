"""Results chart: the prediction rejection ratios of all experiments at a glance, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holue.evaluation.report.displays import CURVE_STYLES, MARKERS
from holue.evaluation.report.drawing import GREY, Drawing, look, new_figure
from holue.experiments.experiment import MAIN

Document = Mapping[str, Any]
DRAWN = ("holue-plus", "holue-f1", "holue", "galue", "acceptance", "scf")
"""Methods of the chart: ours, and the best known of the paper's."""
TITLES = {"prr_f1": "PRR of F1", "prr_accuracy": "PRR of accuracy"}


def results_charts(documents: Sequence[Document]) -> list[Drawing]:
    """A chart for F1 and one for accuracy: a row for each data set and FPIR, a marker for each method."""
    return [_chart(documents, measure) for measure in TITLES]


def _chart(documents: Sequence[Document], measure: str) -> Drawing:
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


def _main(document: Document) -> Document:
    return next(variant for variant in document["variants"] if variant["variant"] == MAIN)
