"""Passage figures: a strip of pictures with the doubts beneath, and the mean over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from holue.datasets.glyphs.rendering import SIZE, Pixels
from holue.demo.passages import STEPS, Passage, Passages, highest_in_middle, mean_doubts
from holue.demo.pictures import ink_box
from holue.evaluation.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, Drawing, look, new_figure
from holue.gallery.embeddings import Float64Array

PICTURES = 9
HOLISTIC: dict[str, Any] = {"color": GREEN, "linewidth": 2.4, "label": "uncertainty (HolUE-plus)"}
SAMPLE: dict[str, Any] = {"color": ORANGE, "linestyle": ":", "linewidth": 2, "label": "poor sample (SCF, low κ)"}


def draw_passage(passage: Passage, position: Float64Array, number: int) -> Drawing:
    """One pair: pictures on the way, the two doubts and the probabilities."""
    name = f"morph_{number}"
    with look(name):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5, 4.8), layout="constrained")
        strip, doubts, posterior = figure.subplots(3, 1, sharex=True, height_ratios=(0.7, 2.2, 2.2))
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
        posterior.set(ylim=(-0.03, 1.03), ylabel="probability")
        posterior.set_xticks([0, 0.25, 0.5, 0.75, 1], [passage.first, "", "halfway", "", passage.second])
        for end in (0, -1):
            posterior.get_xticklabels()[end].set_fontsize(15)
        for ax in (doubts, posterior):
            ax.axvline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
            ax.legend(loc="upper left", bbox_to_anchor=(0, 1.22), ncols=3, fontsize=9, borderaxespad=0)
    peak = int(passage.doubt.argmax())
    doubt, sample = (100 * values for values in (passage.doubt, passage.sample_doubt))
    caption = (
        f"Least certain {100 * position[peak]:.0f} % of the way: less than {doubt[peak]:.0f} % of the demo's answers (at the "
        f"ends {doubt[0]:.0f} % and {doubt[-1]:.0f} %). The sample is poorer there than {sample[peak]:.0f} % of its samples "
        f"(ends {sample[0]:.0f} % and {sample[-1]:.0f} %)."
    )
    return Drawing(name, caption, figure)


def draw_means(passages: Passages) -> Drawing:
    """The doubts along the way, averaged over the pairs within reach and over the others."""
    name = "morph_means"
    kinds = (
        (passages.within_reach, "-", "one of the two all the way"),
        (passages.beyond, "--", "through nobody enrolled"),
    )
    with look(name):
        figure, ax = new_figure(5, 4.2)
        for some, style, what in kinds:
            if some:
                doubt, sample = mean_doubts(some)
                ax.plot(
                    passages.position, doubt, color=GREEN, linestyle=style, linewidth=2, label=f"uncertainty, {what}"
                )
                ax.plot(passages.position, sample, color=ORANGE, linestyle=style, label=f"poor sample, {what}")
        ax.axvline(0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
        ax.set(ylim=(0, 1), ylabel="mean rank among all probes")
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["one glyph", "", "halfway", "", "the other"])
        figure.legend(loc="outside lower center", ncols=1, fontsize=9)
    caption = " ".join(["All pairs, averaged.", *(_told(what, some) for some, _, what in kinds if some)])
    return Drawing(name, caption, figure)


def _told(what: str, some: tuple[Passage, ...]) -> str:
    (doubt, sample), highest, halfway = mean_doubts(some), highest_in_middle(some), STEPS // 2
    return (
        f"{what.capitalize()} ({len(some)} pairs): uncertainty {_ends(doubt):.2f} at the ends, {doubt[halfway]:.2f} halfway; "
        f"poor sample {_ends(sample):.2f} and {sample[halfway]:.2f}. In the middle half of the way the answer is least certain "
        f"for {highest[0]} pairs, the sample poorest for {highest[1]}."
    )


def _strip(ax: Any, passage: Passage, position: Float64Array) -> None:
    rows = np.linspace(0, len(position) - 1, PICTURES).astype(int)
    window = _window(passage.images)
    half = 0.5 / (PICTURES - 1)
    for row in rows:
        at = position[row]
        ax.imshow(
            passage.images[row][window],
            cmap="gray",
            vmin=0,
            vmax=255,
            extent=(at - half, at + half, 0, 1),
            aspect="auto",
        )
    ax.set(xlim=(-half, 1 + half), ylim=(0, 1))
    ax.set_box_aspect(1 / PICTURES)  # square pictures
    ax.axis("off")


def _window(images: Pixels) -> tuple[slice, slice]:
    """A square around the ink of all images: a bracket alone in the middle of an empty picture is hard to see."""
    box = ink_box(images.min(axis=0))
    if box is None:
        return slice(None), slice(None)
    top, left, bottom, right = box
    size = min(max(bottom - top, right - left) + 4, SIZE)
    starts = (min(max((low + high - size) // 2, 0), SIZE - size) for low, high in ((top, bottom), (left, right)))
    first, second = (slice(start, start + size) for start in starts)
    return first, second


def _ends(values: Float64Array) -> float:
    return float((values[0] + values[-1]) / 2)
