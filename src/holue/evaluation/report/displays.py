"""Displays: plots of predictions in scikit-learn's manner, ``…Display.from_predictions(..., ax=ax)``.

Each display keeps the numbers it draws, and after drawing ``ax_`` and ``figure_``. Without ``ax`` it makes a figure of its own.
Several displays on one ``ax`` take the next colour and dash each, told apart with any colour vision and in print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from holue.evaluation.columns import BoolArray, FloatArray, flags, numbers, same_length
from holue.evaluation.metrics.calibration_error import ReliabilityDiagram, reliability_diagram
from holue.evaluation.metrics.rejection import PredictionRejection, prediction_rejection
from holue.evaluation.metrics.tradeoff import TradeOff, det_points
from holue.evaluation.report.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    look,
    new_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_STYLES: tuple[dict[str, Any], ...] = (
    {"color": VERMILLION, "linestyle": "-", "linewidth": 2.2},
    {"color": BLUE, "linestyle": (0, (5, 2))},
    {"color": GREEN, "linestyle": (0, (5, 1.5, 1, 1.5))},
    {"color": PURPLE, "linestyle": (0, (1.5, 1.2)), "linewidth": 2.0},
    {"color": ORANGE, "linestyle": (0, (8, 2, 1, 2, 1, 2))},
    {"color": SKY, "linestyle": (0, (3, 3))},
)
"""The curves of a panel in their order; each differs from the others in colour and in dash."""
REFERENCE_STYLES: dict[str, dict[str, Any]] = {
    "random": {"color": GREY, "linestyle": (0, (1, 2)), "linewidth": 1.2},
    "oracle": {"color": BLACK, "linestyle": "-", "linewidth": 0.9},
}
MARKERS = ("o", "s", "^", "D", "v", "P")
METRIC_NAMES = {
    "f1": "F1",
    "fpir": "FPIR",
    "fnir": "FNIR",
    "dir": "DIR",
    "error_rate": "error rate",
    "misidentifications": "misidentifications left",
}


class Display:
    """What all displays share: where they were drawn."""

    ax_: Axes
    figure_: Figure

    def _axes(self, ax: Axes | None) -> Axes:
        """The axes given, or new ones."""
        if ax is None:
            with look(type(self).__name__):
                _, ax = new_figure(5.2, 3.9)
        self.ax_, self.figure_ = ax, ax.figure  # type: ignore[assignment]
        return ax


@dataclass
class RejectionCurveDisplay(Display):
    """A metric on the probes that stay, against the fraction that is filtered.

    >>> display = RejectionCurveDisplay.from_predictions(
    ...     [0.1, 0.9, 0.8, 0.7], mated=[1, 1, 1, 0], accepted=[1, 1, 1, 0], correct_subject=[0, 1, 1, 0],
    ...     metric="accuracy", name="mine",
    ... )
    >>> display.ax_.get_legend_handles_labels()[1]
    ['mine', 'random', 'oracle']
    """

    metric: str
    fractions: FloatArray
    values: FloatArray
    references: Mapping[str, FloatArray] = field(default_factory=dict)
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        quality: ArrayLike,
        *,
        mated: ArrayLike,
        accepted: ArrayLike,
        correct_subject: ArrayLike,
        metric: str = "f1",
        max_rejection: float = 0.5,
        name: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> RejectionCurveDisplay:
        """Filter the probes of lowest quality and draw the metric of the rest, with blind filtering and the oracle."""
        found: PredictionRejection = prediction_rejection(
            quality,
            mated=mated,
            accepted=accepted,
            correct_subject=correct_subject,
            metric=metric,
            max_rejection=max_rejection,
            prr="paper",  # the whole range is drawn
        )
        references = {"random": found.random.values, "oracle": found.oracle.values}
        return cls(metric, found.curve.fractions, found.curve.values, references, name).plot(ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> RejectionCurveDisplay:
        """Draw; the references are drawn once on the same axes."""
        ax = self._axes(ax)
        drawn = {line.get_label() for line in ax.get_lines()}
        given = {**next_style(ax), **style}
        ax.plot(self.fractions, self.values, label=self.name or "quality", **given)
        for reference, values in self.references.items():
            if reference not in drawn:
                ax.plot(self.fractions, values, label=reference, zorder=1, **REFERENCE_STYLES[reference])
        ax.set_xlabel("filtered fraction of probes")
        ax.set_ylabel(METRIC_NAMES.get(self.metric, self.metric.replace("_", " ")))
        ax.set_xlim(0, float(self.fractions.max()) or 1.0)
        return self


@dataclass
class DetCurveDisplay(Display):
    """FNIR against FPIR as the threshold moves, on logarithmic axes where it can be.

    >>> display = DetCurveDisplay.from_predictions(
    ...     [0.9, 0.8, 0.4, 0.7, 0.2, 0.1], mated=[1, 1, 1, 0, 0, 0], correct_subject=[1, 1, 1, 0, 0, 0], name="faces"
    ... )
    >>> display.ax_.get_xlabel()
    'FPIR: share of strangers accepted'
    """

    curve: TradeOff
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        score: ArrayLike,
        *,
        mated: ArrayLike,
        correct_subject: ArrayLike,
        name: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> DetCurveDisplay:
        """From each probe's best score, and whether it belongs to its own subject."""
        return cls(det_points(score, mated=mated, correct_subject=correct_subject), name).plot(ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> DetCurveDisplay:
        """Draw."""
        ax = self._axes(ax)
        shown = self.curve.fpir > 0
        label = {"label": self.name} if self.name else {}
        ax.plot(self.curve.fpir[shown], self.curve.fnir[shown], **{**next_style(ax), **label, **style})
        ax.set_xscale("log")
        plain_ticks(ax.xaxis)
        if shown.any() and (self.curve.fnir[shown] > 0).all():
            ax.set_yscale("log")
            plain_ticks(ax.yaxis)
        ax.set_xlabel("FPIR: share of strangers accepted")
        ax.set_ylabel("FNIR: share of mated probes missed")
        return self

    def mark(self, points: Sequence[tuple[str, float, float]]) -> DetCurveDisplay:
        """Mark operating points (label, FPIR, FNIR), each with a marker that the legend explains: labels cannot overprint."""
        for i, (label, fpir, fnir) in enumerate(points):
            marker = MARKERS[i % len(MARKERS)]
            self.ax_.plot(
                fpir,
                fnir,
                marker,
                color=CURVE_STYLES[(i + 1) % len(CURVE_STYLES)]["color"],
                markeredgecolor=BLACK,
                markersize=7,
                label=label,
                zorder=3,
            )
        return self


@dataclass
class ScoreHistogramDisplay(Display):
    """Best scores of mated and of non-mated probes.

    >>> display = ScoreHistogramDisplay.from_predictions([0.9, 0.8, 0.2, 0.1], mated=[1, 1, 0, 0])
    >>> display.ax_.get_legend_handles_labels()[1]
    ['non-mated (2)', 'mated (2)']
    """

    score: FloatArray
    mated: BoolArray
    bins: int = 60

    @classmethod
    def from_predictions(
        cls, score: ArrayLike, *, mated: ArrayLike, bins: int = 60, ax: Axes | None = None
    ) -> ScoreHistogramDisplay:
        """From each probe's best score and whether its subject is enrolled."""
        scores, is_mated = numbers("score", score), flags("mated", mated)
        same_length(score=scores, mated=is_mated)
        return cls(scores, is_mated, bins).plot(ax)

    def plot(self, ax: Axes | None = None) -> ScoreHistogramDisplay:
        """Draw."""
        ax = self._axes(ax)
        low = float(self.score.min())
        edges = np.linspace(low, max(float(self.score.max()), low + 1e-6), self.bins + 1).tolist()
        # The outline tells the two apart where colour does not.
        for of, label, color, line in ((~self.mated, "non-mated", ORANGE, "--"), (self.mated, "mated", BLUE, "-")):
            if of.any():
                values = self.score[of]
                ax.hist(values, edges, density=True, color=color, alpha=0.45, label=f"{label} ({of.sum()})")
                ax.hist(values, edges, density=True, histtype="step", color=color, linestyle=line, linewidth=1.1)
        ax.set_xlabel("best cosine of a probe to the gallery")
        ax.set_ylabel("density")
        return self


@dataclass
class ReliabilityDisplay(Display):
    """Share of right answers against the probability that a method gave them.

    >>> display = ReliabilityDisplay.from_predictions([0.2, 0.3, 0.8, 0.9], correct=[0, 0, 1, 1], bins=2, name="mine")
    >>> display.diagram.predicted, display.diagram.observed
    (array([0.25, 0.85]), array([0., 1.]))
    """

    diagram: ReliabilityDiagram
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        probability: ArrayLike,
        *,
        correct: ArrayLike,
        bins: int = 15,
        name: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> ReliabilityDisplay:
        """From P(correct) of each answer and whether it was right."""
        return cls(reliability_diagram(probability, correct=correct, bins=bins), name).plot(ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> ReliabilityDisplay:
        """Draw; the area of a dot is the share of the answers in its bin."""
        ax = self._axes(ax)
        given = {**next_style(ax), **style}
        if "perfect" not in {line.get_label() for line in ax.get_lines()}:
            ax.plot([0, 1], [0, 1], label="perfect", zorder=1, **REFERENCE_STYLES["random"])
        diagram = self.diagram
        ax.plot(diagram.predicted, diagram.observed, label=self.name or "P(correct)", **given)
        size = 4 + 160 * diagram.count / diagram.count.sum()
        ax.scatter(diagram.predicted, diagram.observed, s=size, color=given["color"], zorder=3)
        ax.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="P(correct) of the method", ylabel="share of right answers")
        return self


def next_style(ax: Axes) -> dict[str, Any]:
    """The style of the next curve on these axes: its place among those drawn, references aside."""
    drawn = [line for line in ax.get_lines() if line.get_label() not in (*REFERENCE_STYLES, "perfect")]
    return CURVE_STYLES[len(drawn) % len(CURVE_STYLES)]


def plain_ticks(axis: Any) -> None:
    """Numbers instead of powers on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
