"""Chart: the pictures of a run: what the whole answer costs beside a bare search, and how each way of reading grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from holue.bench.page.approximate_page import GROWTH_CAPTION
from holue.bench.page.page import CAPTION
from holue.bench.sections.section import Result, Row
from holue.evaluation.report.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    Drawing,
    look,
    new_figure,
)

STYLES: dict[str, dict[str, Any]] = {
    "sgemm": {"color": BLACK, "linestyle": "--", "marker": ""},
    "holue": {"color": VERMILLION, "linewidth": 2.6, "zorder": 3},
    "faiss": {"color": BLUE},
    "usearch": {"color": PURPLE},
    "numpy float32": {"color": GREEN, "linestyle": ":"},
    "numpy float64": {"color": ORANGE, "linestyle": ":"},
}


def speed_chart(result: Result) -> Drawing:
    """Time over the bare product's by number of probes, one panel per dimension; nanoseconds per score by subjects."""
    with look("speed"):
        rows = [row for row in result.get("comparison", []) if "ratio_to_sgemm" in row]
        threads = max((row["threads"] for row in rows), default=1)
        dims = list(dict.fromkeys(row["dim"] for row in rows))
        figure, axes = new_figure(4.2 * (len(dims) + 1), 3.9, 1, len(dims) + 1)
        axes = axes if dims else [axes]
        for dim, panel in zip(dims, axes):
            _ratios(panel, [row for row in rows if row["dim"] == dim and row["threads"] == threads], dim, threads)
        if dims:
            axes[0].set_ylabel("time / bare matrix product")
            figure.legend(
                *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(STYLES), fontsize=9
            )
        mapped = (result.get("mapped") or {}).get("rows", [])
        ours = [row for row in [*result.get("growth", []), *mapped] if row["system"] == "holue"]
        _growth(axes[-1], sorted(ours, key=lambda row: row["subjects"]), from_disk=bool(mapped))
    return Drawing("speed", CAPTION, figure)


def growth_chart(rows: list[Row]) -> Drawing:
    """The time of one probe against the number of subjects, exact and approximate, from rows of ``approximate.speed``."""
    with look("approximate"):
        batches = sorted({row["probes"] for row in rows})
        shown = list(dict.fromkeys([batches[0], batches[-1]]))
        figure, axes = new_figure(4.2 * len(shown), 3.9, columns=len(shown))
        panels = axes if len(shown) > 1 else [axes]
        for panel, n_probes in zip(panels, shown):
            _per_probe(panel, [row for row in rows if row["probes"] == n_probes], n_probes)
        panels[0].set_ylabel("milliseconds per probe")
        figure.legend(
            *panels[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=4,
            fontsize=9,
            title="dashed: two threads",
        )
        return Drawing("approximate", GROWTH_CAPTION, figure)


def _ratios(panel: Any, rows: list[Row], dim: int, threads: int) -> None:
    for name, style in STYLES.items():
        points = [(row["probes"], row["ratio_to_sgemm"]) for row in rows if row["system"] == name]
        if points:
            panel.plot(*zip(*points), **{"marker": "o", "markersize": 4, "label": name} | style)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    _plain_ticks(panel.xaxis, sorted({row["probes"] for row in rows}))
    _plain_ticks(panel.yaxis, _within(panel))
    panel.set_xlabel("probes at once")
    panel.set_title(f"d = {dim}, {threads} thread{'s' if threads > 1 else ''}")


def _growth(panel: Any, rows: list[Row], *, from_disk: bool) -> None:
    narrow = min((row["dim"] for row in rows if _sizes(rows, row["dim"]) > 1), default=None)
    some = [row for row in rows if row["dim"] == narrow]
    for probes, color in zip(dict.fromkeys(row["probes"] for row in some), (VERMILLION, BLUE, GREY)):
        points = [
            (row["subjects"], 1e6 * row["median_ms"] / row["subjects"] / probes)
            for row in some
            if row["probes"] == probes
        ]
        label = f"{probes} probe{'s' if probes > 1 else ''}"
        panel.plot(*zip(*points), marker="o", markersize=4, color=color, label=label)
    if some:
        panel.set_xscale("log")
        panel.set_yscale("log")
        _plain_ticks(panel.yaxis, _within(panel))
        panel.legend(fontsize=9)
    panel.set_xlabel("subjects (the largest gallery is on disk)" if from_disk else "subjects")
    panel.set_ylabel("ns per score")
    panel.set_title(f"holue as the gallery grows, d = {narrow}" if some else "growth")


def _per_probe(panel: Any, rows: list[Row], n_probes: int) -> None:
    from matplotlib.ticker import NullFormatter

    for name, colour in (("exact", GREY), ("approximate", VERMILLION), ("FAISS, the top alone", BLUE)):
        here = [row for row in rows if row["system"] == name]
        for n_threads, line in zip(sorted({row["threads"] for row in here}), ("-", "--")):
            some = [row for row in here if row["threads"] == n_threads]
            subjects = np.array([row["subjects"] for row in some])
            low, middle, high = np.array([[row[f"{q}_ms"] for row in some] for q in ("q1", "median", "q3")]) / n_probes
            style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": "o", "markersize": 4}
            label = name if line == "-" else None
            panel.errorbar(subjects, middle, [middle - low, high - middle], label=label, **style)
            if name == "approximate" and line == "-":
                root = middle[-1] * np.sqrt(subjects / subjects[-1])
                panel.plot(subjects, root, color=BLACK, linestyle=":", linewidth=1, label="√K")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlabel("subjects")
    panel.set_title("one probe" if n_probes == 1 else f"{n_probes} probes at once")


def _sizes(rows: list[Row], dim: int) -> int:
    return len({row["subjects"] for row in rows if row["dim"] == dim})


def _within(panel: Any) -> list[float]:
    low, high = panel.get_ylim()
    return [tick for power in (0.1, 1, 10, 100) for tick in (power, 2 * power, 5 * power) if low <= tick <= high]


def _plain_ticks(axis: Any, ticks: list[float]) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
