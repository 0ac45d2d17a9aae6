"""Headline: what an evaluation tells its reader to do, in one sentence, and the numbers behind it in a few more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from holue.evaluation.intervals.estimates import Estimate

if TYPE_CHECKING:
    from holue.evaluation.comparison.results import MethodResult, PointResult, Results

CHECKED = 0.1
"""The share of answers set aside in the sentences."""
FAR = 1.5
"""A reached FPIR this many times its target is a miss even where the interval holds the target."""
HALF = 0.5
"""A rank-1 whose interval lies below this says that the embedding model is not made for these subjects, as in the audit."""
DOMINANT, MANY_TIMES = 0.25, 5
"""One person with more than this share of the mated or of the non-mated probes, and this many times an equal share, is named."""
Missed = Literal["over", "maybe over", "under"]
VERDICTS: dict[Missed | None, str] = {
    "over": ", above the target",
    "maybe over": f", more than {FAR:g} times the target",
    "under": ", below the target",
    None: "",
}


def headline(results: Results) -> str:
    """What to do, in one sentence, for the first operating point; a model that fails and missed targets come first."""
    point = results.points[0]
    rank_1 = point.recognition["rank_1"]
    if rank_1.high is not None and rank_1.high < HALF:
        return (
            f"This model does not tell your subjects apart: only {percent(rank_1.value)} of the probes of enrolled subjects are "
            f"closest to their own subject{_interval(rank_1, percent(results.settings.level))}; take another embedding model, "
            "and look at the samples with holue audit, before you compare methods."
        )
    todo = _what_to_do(point, is_one_of_several=len(results.points) > 1)
    over = [one for one in results.points if missed(one) in ("over", "maybe over")]
    under = [one for one in results.points if missed(one) == "under"]
    if over:
        is_clear = any(missed(one) == "over" for one in over)
        remedy = (
            "so take a stricter target or calibrate with people more like those who will be met"
            if is_clear
            else "so test with more people before you rely on it"
        )
        return (
            f"Do not count on FPIR {_targets(over)}: {_reached(over[0], results.settings.level)}, {remedy}; then "
            f"{todo[0].lower()}{todo[1:]}."
        )
    if under:
        return (
            f"The threshold is stricter than it need be: {_reached(under[0], results.settings.level)}, so a higher target would "
            f"miss fewer enrolled people; {todo[0].lower()}{todo[1:]}."
        )
    return f"{todo}."


def missed(point: PointResult) -> Missed | None:
    """How the FPIR that was reached misses its target, or None.

    ``"over"`` and ``"under"``: the target lies outside the interval. ``"maybe over"``: inside, but the reached FPIR is more than
    ``FAR`` times the target. A few people with many probes make such an interval wide.
    """
    reached, target = point.recognition["fpir"], point.target_fpir
    if reached.value is None:
        return None
    if reached.low is not None and reached.low > target:
        return "over"
    if reached.high is not None and reached.high < target:
        return "under"
    return "maybe over" if reached.value > FAR * target else None


def answer(results: Results) -> str:
    """Which method is best at the first operating point, by how much, what filtering by it gains, and the FPIR reached."""
    point, level = results.points[0], percent(results.settings.level)
    start = f"At FPIR {point.target_fpir:g} ({results.settings.label}), "
    ranked = point.ranked
    if not ranked:
        return f"{start}no method can be ranked: {_why_unranked(point)}. {_reached_line(results, point)}{_dominant(results)}"
    best = ranked[0]
    sentence = f"{start}filtering by {best.method.name} {_gains(best, level)}"
    if len(ranked) > 1:
        second = ranked[1]
        worse = second.prr.value is not None and second.prr.value < 0
        sentence += f"; next is {second.method.name}{',' if worse else ' with'} "
        sentence += "worse than filtering at random" if worse else f"{percent(second.prr.value)} in F1"
        behind = second.behind_best
        if behind is not None and behind.low is not None:
            sentence += ", clearly behind" if behind.low > 0 else ", not clearly behind (the paired interval holds 0)"
    gain = _gain(point, best)
    if gain is not None:
        sentence += f". Setting the least reliable {gain[0]} aside moves F1 from {gain[1]:.3f} to {gain[2]:.3f}"
    return f"{sentence}. {_reached_line(results, point)}{_dominant(results)}"


def percent(value: float | None) -> str:
    """A share in percent.

    >>> percent(0.25)
    '25 %'
    """
    return f"{value:.0%}".replace("%", " %")


def _what_to_do(point: PointResult, *, is_one_of_several: bool) -> str:
    ranked = point.ranked
    if not ranked:
        return f"Filter nothing at FPIR {point.target_fpir:g}, since no method can be ranked: {_why_unranked(point)}"
    best = ranked[0]
    if not any(_is_positive(ratio) for ratio in (best.prr, best.prr_accuracy)):
        return (
            f"Do not filter by any of these methods at FPIR {point.target_fpir:g}: none is clearly better than chance"
        )
    gain = _gain(point, best)
    told = "" if gain is None else f", which moves F1 of the rest from {gain[1]:.3f} to {gain[2]:.3f}"
    told += f" at FPIR {point.target_fpir:g}" if told and is_one_of_several else ""
    share = percent(CHECKED) if gain is None else gain[0]
    return f"Have a person check the {share} of answers that {best.method.name} trusts least{told}"


def _gains(result: MethodResult, level: str) -> str:
    """What filtering gains in F1 and in accuracy, as a predicate; a negative PRR is worse than filtering at random."""
    said: list[str] = []
    was_negative: bool | None = None
    for ratio, metric in ((result.prr, "F1"), (result.prr_accuracy, "accuracy")):
        if ratio.value is None:
            continue
        is_negative = ratio.value < 0
        if is_negative:
            start = "" if was_negative else "is worse than filtering at random "
            said.append(
                f"{start}in {metric} (PRR {ratio.value:.2f}{_interval(ratio, level).replace(' (', ', ') or ')'}"
            )
        else:
            of = "" if was_negative is False else " of what a perfect filter could gain"
            start = "" if was_negative is False else "gains "
            said.append(f"{start}{percent(ratio.value)}{of} in {metric}{_between(ratio, level)}")
        was_negative = is_negative
    return ", and ".join(said)


def _is_positive(ratio: Estimate) -> bool:
    return ratio.value is not None and (ratio.value if ratio.low is None else ratio.low) > 0


def _gain(point: PointResult, best: MethodResult) -> tuple[str, float, float] | None:
    """How much is set aside, and F1 before and after; None where F1 has no value."""
    f1 = point.curves["f1"][best.method.key]
    place = int(np.argmin(np.abs(point.fractions - CHECKED)))
    if not place or not np.isfinite(f1[[0, place]]).all():
        return None
    return percent(point.fractions[place]), float(f1[0]), float(f1[place])


def _why_unranked(point: PointResult) -> str:
    return next((result.prr.reason for result in point.methods if result.prr.reason), "no method has a value")


def _targets(points: list[PointResult]) -> str:
    *first, last = (f"{point.target_fpir:g}" for point in points)
    return f"{', '.join(first)} or {last}" if first else last


def _reached(point: PointResult, level: float) -> str:
    """``asked for 0.01, it reached 0.051 (95 % interval 0.031 to 0.07)``."""
    number = point.recognition["fpir"]
    return f"asked for {point.target_fpir:g}, it reached {number.value:.3g}{_interval(number, percent(level))}"


def _reached_line(results: Results, point: PointResult) -> str:
    number = point.recognition["fpir"]
    if number.value is None:
        return f"The reached FPIR has no value: {number.reason}."
    verdict = VERDICTS[missed(point)]
    told = _reached(point, results.settings.level).replace("asked for", "Asked for FPIR", 1)
    return f"{told}{verdict}."


def _dominant(results: Results) -> str:
    """A sentence for each kind of probe of which one person has so many that the numbers are about that person; else nothing."""
    part = results.protocol.evaluation
    said = ""
    for kind, rows in (("mated", part.mated), ("non-mated", ~part.mated)):
        people, count = np.unique(part.probe_subjects[rows], return_counts=True)
        if not len(count):
            continue
        most, share = int(count.max()), float(count.max() / rows.sum())
        if share > DOMINANT and share * len(people) > MANY_TIMES:
            said += (
                f" {most} of the {rows.sum()} {kind} evaluation probes show one person, {people[count.argmax()].item()}: the "
                "numbers are mostly about that person; keep fewer samples of each."
            )
    return said


def _between(number: Estimate, level: str) -> str:
    if number.low is None or number.high is None:
        return ""
    return f" ({level} interval {100 * number.low:.0f} to {100 * number.high:.0f} %)"


def _interval(number: Estimate, level: str) -> str:
    if number.low is None or number.high is None:
        return ""
    return f" ({level} interval {number.low:.3g} to {number.high:.3g})"
