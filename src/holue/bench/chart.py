"""Chart: one picture of a run: what the whole answer costs beside a bare search, and how it grows."""

from __future__ import annotations

from typing import Any

from holue.bench.page import CAPTION
from holue.evaluation.drawing import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILLION, Drawing, look, new_figure

Result = dict[str, Any]
Row = dict[str, Any]

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
        rows = [row for row in result["comparison"] if "ratio_to_sgemm" in row]
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
        mapped = (result["mapped"] or {}).get("rows", [])
        ours = [row for row in [*result["growth"], *mapped] if row["system"] == "holue"]
        _growth(axes[-1], sorted(ours, key=lambda row: row["subjects"]), from_disk=bool(mapped))
    return Drawing("speed", CAPTION, figure)


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
