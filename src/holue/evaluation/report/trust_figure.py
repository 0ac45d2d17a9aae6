"""Trust figure: what becomes of every probe, three ways, at each certified target."""

from __future__ import annotations

from holue.evaluation.comparison.results import Results
from holue.evaluation.deployment.three_way import ThreeWay
from holue.evaluation.report.drawing import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, Drawing, look, new_figure

PALE = "#D9D9D9"
KINDS = (
    ("accepted_right", "accepted, right", BLUE),
    ("rejected_right", "rejected, right", SKY),
    ("misidentifications", "misidentified", PURPLE),
    ("false_acceptances", "stranger accepted", VERMILLION),
    ("false_rejections", "enrolled rejected", ORANGE),
    ("filtered_wrong", "filtered, would be wrong", GREEN),
    ("filtered_right", "filtered, would be right", PALE),
)


def three_way_figure(results: Results) -> Drawing | None:
    """A bar for each certified target, and one without a filter; None where there is no study."""
    study = results.trust
    if study is None or study.unfiltered is None:
        return None
    # Targets that filter the same answers share a bar.
    labels: dict[ThreeWay, list[str]] = {study.unfiltered: ["nothing filtered"]}
    for one in study.reports:
        if one.certificate is not None:
            labels.setdefault(one.three_way, []).append(f"at most {one.target_level:g}")
    bars = [("\n".join(some), ways) for ways, some in labels.items()]
    name = "three_way"
    with look(name):
        figure, ax = new_figure(5.6, 2.2 + 0.35 * len(bars) + 0.15 * sum(len(some) for some in labels.values()))
        names = [label for label, _ in bars]
        left = [0.0] * len(bars)
        for kind, label, color in KINDS:
            share = [getattr(ways, kind) / ways.total for _, ways in bars]
            ax.barh(names, share, left=left, label=label, color=color, height=0.62)
            left = [start + width for start, width in zip(left, share)]
        ax.invert_yaxis()
        ax.set_xlim(0, 1)
        ax.set_xlabel("share of the evaluation probes")
        ax.grid(axis="y", visible=False)
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    caption = (
        "What becomes of the evaluation probes: decided and right, decided and wrong in one of three ways, or filtered, split by "
        "what the answer would have been."
    )
    return Drawing(name, caption, figure)
