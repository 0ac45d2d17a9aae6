"""Paper figures: the toy world of Figure 1 and the interpolation strip of Figure 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from holue.evaluation.paper.interpolation import COVERED_AT, Interpolation
from holue.evaluation.paper.toy_world import FIRST, INNER, OUTER, SECOND, ToyWorld
from holue.evaluation.report.drawing import BLUE, GREY, ORANGE, SKY, VERMILLION, Drawing, look, new_figure


def draw_toy_world(world: ToyWorld) -> Drawing:
    """Figure 1: class posteriors and HolUE's uncertainty as curves around the circle."""
    name = "figure1_toy_world"
    radians = np.deg2rad(world.angles)
    with look(name):
        figure, ax = new_figure(6.2, 6.2)
        _circle(ax, radians, np.ones_like(radians), color=GREY, linewidth=1)
        curves = (
            (world.posterior[:, 0], ORANGE, "P(first subject)"),
            (world.posterior[:, 1], BLUE, "P(second subject)"),
            (world.uncertainty, VERMILLION, "uncertainty (HolUE)"),
        )
        for values, color, label in curves:
            _circle(ax, radians, 1 + values, color=color, label=label, linewidth=2.2 if color == VERMILLION else 1.6)
        for degrees, color in ((FIRST, ORANGE), (SECOND, BLUE)):
            _mark(ax, degrees, 1.0, marker="o", markersize=11, color=color)
        probes = ((OUTER, world.outer_uncertainty, (-128, -30)), (INNER, world.inner_uncertainty, (-104, -44)))
        for degrees, uncertainty, offset in probes:
            x, y = _mark(ax, degrees, 1.0, marker="o", markersize=8, color=SKY, markeredgecolor="black")
            ax.annotate(
                f"uncertainty {uncertainty:.2f}",
                (x, y),
                xytext=offset,
                textcoords="offset points",
                arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.8, "shrinkB": 5},
            )
        ax.set_aspect("equal")
        ax.axis("off")
        ax.set(xlim=(-1.2, 1.75), ylim=(-1.1, 1.95))
        ax.legend(loc="lower right")
        ax.set_title("Two probes at the same distance from the first subject")
    caption = (
        "Two subjects on a circle (dots), the posterior of each and HolUE's uncertainty as distance outside the circle. Both "
        f"probes are equally far from the first subject; the inner one is also near the second, and less certain: "
        f"{world.inner_uncertainty:.2f} against {world.outer_uncertainty:.2f}."
    )
    return Drawing(name, caption, figure)


def draw_interpolation(strip: Interpolation) -> Drawing:
    """Figure 3: three uncertainties along the way from one subject to the other."""
    name = "figure3_interpolation"
    styles: dict[str, dict[str, Any]] = {
        "SCF": {"color": ORANGE, "linestyle": ":", "marker": "s"},
        "GalUE": {"color": BLUE, "linestyle": "--", "marker": "^"},
        "HolUE": {"color": VERMILLION, "marker": "o"},
    }
    with look(name):
        figure, ax = new_figure(8, 4)
        for method, values in strip.uncertainty.items():
            ax.plot(strip.position, values, label=method, markersize=4, **styles[method])
        ax.axvline(0.5, color=GREY, linewidth=1, linestyle=(0, (1, 2)))
        ax.annotate("could be either", (0.51, 1.07), va="bottom", fontsize=9, color="#555555")
        ax.annotate("poor sample", (COVERED_AT, 1.07), ha="center", va="bottom", fontsize=9, color="#555555")
        ax.set_ylim(-0.03, 1.18)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["first\nsubject", "", "halfway", "", "second\nsubject"])
        ax.set_ylabel("uncertainty, each scaled to 0..1")
        ax.legend(loc="center right")
    caption = (
        "A probe slides from one subject to the other. GalUE and HolUE are least certain halfway, where it could be either; "
        "sample quality (SCF) only sees where the sample is poor. HolUE sees both."
    )
    return Drawing(name, caption, figure)


def _circle(ax: Any, radians: Any, radius: Any, **style: Any) -> None:
    ax.plot(radius * np.cos(radians), radius * np.sin(radians), **style)


def _mark(ax: Any, degrees: float, radius: float, **style: Any) -> tuple[float, float]:
    x, y = radius * float(np.cos(np.deg2rad(degrees))), radius * float(np.sin(np.deg2rad(degrees)))
    ax.plot([x], [y], linestyle="none", **style)
    return x, y
