"""Drawing: one look for every figure, and files whose bytes depend on the data alone."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holue.artifact import whole_file, write_text
from holue.errors import MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"

LOOK: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "axes.edgecolor": "#666666",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "figure.facecolor": "white",
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class Drawing:
    """A figure with the name of its files, and a caption that says what to see."""

    name: str
    caption: str
    figure: Figure

    @cached_property
    def svg(self) -> str:
        """The figure as an SVG file."""
        file = io.StringIO()
        with look(self.name):
            self.figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        return file.getvalue()

    @property
    def svg_element(self) -> str:
        """The figure as an element of a page: without the XML declaration."""
        return self.svg[self.svg.index("<svg") :]

    def save(self, folder: Path) -> None:
        """Write ``name.png`` and ``name.svg``; the same figure gives the same bytes."""
        with look(self.name), whole_file(folder / f"{self.name}.png") as stream:
            self.figure.savefig(stream, format="png", dpi=150, metadata={"Software": None})
        write_text(folder / f"{self.name}.svg", self.svg)


@contextmanager
def look(name: str) -> Iterator[None]:
    """The house's look; ``name`` keeps the ids inside different SVG files apart and repeatable."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingDependencyError("matplotlib", "report") from error
    settings: Any = {**LOOK, "svg.hashsalt": name}
    with mpl.rc_context(settings):
        yield


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """A figure that no interface holds on to, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)
