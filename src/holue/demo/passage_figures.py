"""Passage figures: a strip of pictures with the doubts beneath, and the mean over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from holue.demo.passages import Passage, Passages
from holue.evaluation.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, Drawing, look, new_figure
from holue.gallery.embeddings import Float64Array

PICTURES = 9
HOLISTIC: dict[str, Any] = {"color": GREEN, "linewidth": 2.4, "label": "uncertainty (HolUE-plus)"}
SAMPLE: dict[str, Any] = {"color": ORANGE, "linestyle": ":", "linewidth": 2, "label": "poor sample (SCF, low κ)"}


def draw_passage(passage: Passage, position: Float64Array, number: int) -> Drawing:
    """One pair: pictures on the way, the two doubts and the posterior."""
    name = f"morph_{number}"
    with look(name):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.6, 5), layout="constrained")
        strip, doubts, posterior = figure.subplots(3, 1, sharex=True, height_ratios=(0.62, 2.2, 2.2))
        _strip(strip, passage, position)
        doubts.plot(position, passage.doubt, **HOLISTIC)
        doubts.plot(position, passage.sample_doubt, **SAMPLE)
        doubts.set(ylim=(-0.03, 1.03), ylabel="rank among\nall probes")
        lines = (
            (passage.p_first, BLUE, "-", f"P({passage.first})"),
            (passage.p_second, PURPLE, "-", f"P({passage.second})"),
            (passage.p_unknown, GREY, "--", "P(nobody enrolled)"),
        )
        for values, color, style, label in lines:
            posterior.plot(position, values, color=color, linestyle=style, label=label)
        posterior.set(ylim=(-0.03, 1.03), ylabel="posterior")
        posterior.set_xticks([0, 0.25, 0.5, 0.75, 1], [passage.first, "", "halfway", "", passage.second])
        for ax in (doubts, posterior):
            ax.axvline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
            ax.legend(loc="upper left", bbox_to_anchor=(0, 1.22), ncols=3, fontsize=9, borderaxespad=0)
    middle, sample = (float(values[len(position) // 2]) for values in (passage.doubt, passage.sample_doubt))
    caption = (
        f"Halfway the answer is less certain than {100 * middle:.0f} % of the demo's answers (at the ends: than "
        f"{100 * passage.doubt[0]:.0f} % and {100 * passage.doubt[-1]:.0f} %), while the sample is poorer than "
        f"{100 * sample:.0f} % of its samples (ends: {100 * passage.sample_doubt[0]:.0f} % and "
        f"{100 * passage.sample_doubt[-1]:.0f} %)."
    )
    return Drawing(name, caption, figure)


def draw_mean(passages: Passages) -> Drawing:
    """The two doubts along the way, averaged over every pair that follows the rule."""
    name = "morph_mean"
    doubt, sample = passages.mean_doubt, passages.mean_sample_doubt
    with look(name):
        figure, ax = new_figure(5.6, 3.4)
        ax.plot(passages.position, doubt, **HOLISTIC)
        ax.plot(passages.position, sample, **SAMPLE)
        ax.axvline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
        ax.set(ylim=(0, 1), ylabel="mean rank among all probes")
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["one glyph", "", "halfway", "", "the other"])
        figure.legend(loc="outside lower center", ncols=2)
    highest, count = passages.peak_in_middle, len(passages.all)
    caption = (
        f"Mean over {count} pairs: the rank of the uncertainty goes from {_ends(doubt):.2f} at the ends to "
        f"{doubt[len(doubt) // 2]:.2f} halfway, that of the sample from {_ends(sample):.2f} to {sample[len(sample) // 2]:.2f}. "
        f"The highest uncertainty lies in the middle half of the way in {highest['uncertainty']} pairs, the poorest sample in "
        f"{highest['sample']}."
    )
    return Drawing(name, caption, figure)


def _strip(ax: Any, passage: Passage, position: Float64Array) -> None:
    rows = np.linspace(0, len(position) - 1, PICTURES).astype(int)
    half = 0.5 / (PICTURES - 1)
    for row in rows:
        at = position[row]
        ax.imshow(
            passage.images[row], cmap="gray", vmin=0, vmax=255, extent=(at - half, at + half, 0, 1), aspect="auto"
        )
    ax.set(xlim=(-half, 1 + half), ylim=(0, 1))
    ax.axis("off")


def _ends(values: Float64Array) -> float:
    return float((values[0] + values[-1]) / 2)
