"""Findings: what the numbers of the experiments say, in sentences whose every number is taken from the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holue.experiments.experiment import ABLATED, HELD_BY_MODEL, MAIN, REFERENCE
from holue.experiments.tables.summary_tables import FILTERED

Document = Mapping[str, Any]
PAPER_METHODS = ("pfe", "scf", "sf", "acceptance", "galue", REFERENCE)

FAILED = 0.3
"""A seed whose PRR lies this far below the next lowest is one in which something failed."""


def findings_lines(documents: Sequence[Document]) -> list[str]:
    """The findings as a list, and the FPIR that either way of moving the threshold reaches."""
    some = [
        _first_of_the_paper(documents),
        _failed_seeds(documents),
        _by_probability(documents),
        _calibration(documents),
        *(_causes(document) for document in documents),
        *_estimators(documents),
        *(_kinds_of_error(document) for document in documents),
    ]
    return [f"- {line}" for line in some if line] + ["", *_reached(documents)]


def _first_of_the_paper(documents: Sequence[Document]) -> str:
    others = []
    for name, point, names in _points(documents):
        values = {key: number["value"] for key, number in point["prr_f1"].items() if key in PAPER_METHODS}
        known = {key: value for key, value in values.items() if value is not None}
        best = max(known, key=lambda key: known[key])
        if best != REFERENCE and REFERENCE in known:
            others.append(
                f"{name} at {point['target_fpir']:g} ({names[best]} {known[best]:.3f}, HolUE-MLP {known[REFERENCE]:.3f})"
            )
    if not others:
        return "**HolUE-MLP is first of the paper's six methods everywhere.**"
    return f"**HolUE-MLP is not first of the paper's six everywhere.** Another is first on {'; '.join(others)}."


def _failed_seeds(documents: Sequence[Document]) -> str:
    found, keys = [], set()
    for name, point, names in _points(documents):
        for key in (REFERENCE, ABLATED):
            seeds = sorted(value for value in point["prr_f1"].get(key, {}).get("seeds", ()) if value is not None)
            if len(seeds) > 2 and seeds[1] - seeds[0] > FAILED:
                rest = f"{seeds[1]:.2f} to {seeds[-1]:.2f}"
                keys.add(key)
                found.append(f"{names[key]} on {name} at {point['target_fpir']:g} ({seeds[0]:.2f}, the others {rest})")
    if not found:
        return ""
    failing = (
        " HolUE-MLP's training can fail ([why](why-the-level-differs.md#why-holue-mlp-fails-in-some-worlds))."
        if REFERENCE in keys
        else ""
    )
    return f"**One seed lies far below the others**: {'; '.join(found)}. It is part of the mean.{failing}"


def _by_probability(documents: Sequence[Document]) -> str:
    below: list[str] = []
    by_accuracy: list[str] = []
    for name, point, _ in _points(documents):
        by_f1 = point["difference_to_holue"].get(ABLATED)
        accuracy = point["difference_of_accuracy_to_holue"].get(ABLATED)
        if by_f1 and by_f1["value"] is not None and by_f1["value"] < 0:
            below.append(f"{name} at {point['target_fpir']:g} ({by_f1['value']:+.3f})")
            if accuracy and accuracy["value"] is not None:
                by_accuracy.append(f"{accuracy['value']:+.3f}")
    if not below:
        return "**HolUE-plus is above HolUE-MLP by PRR of F1 everywhere.**"
    return (
        f"**By PRR of F1 HolUE-plus is below HolUE-MLP on {'; '.join(below)}.** F1 does not count right rejections, so an order "
        "by P(correct) also filters doubtful rejections that are right. By accuracy, which counts all answers, the differences "
        f"there are {', '.join(by_accuracy)}."
    )


def _calibration(documents: Sequence[Document]) -> str:
    own: list[float] = []
    others: list[float] = []
    for _, point, _ in _points(documents):
        for key, number in point["calibration_error"].items():
            if number["value"] is not None:
                (own if key == ABLATED else others).append(number["value"])
    if not own or not others:
        return ""
    return (
        f"**Whose numbers are probabilities:** the calibration error of HolUE-plus is {min(own):.3f} to {max(own):.3f}, that of "
        f"the other methods that give a number between 0 and 1 {min(others):.3f} to {max(others):.3f}."
    )


def _causes(document: Document) -> str:
    ablation = _middle(document)["ablation"]
    if "HolUE-plus" not in ablation:
        return ""
    whole = ablation["HolUE-plus"]["prr_f1"]
    without = {
        name: values["prr_f1"]
        for name, values in ablation.items()
        if name.startswith("without ") and values["prr_f1"] is not None
    }
    if whole is None or not without:
        return ""
    told = ", ".join(f"{name} {value:.3f}" for name, value in sorted(without.items(), key=lambda item: item[1]))
    return f"**Which cause matters on {document['name']}** (PRR of F1 at {_target(document)}, with all {whole:.3f}): {told}."


def _estimators(documents: Sequence[Document]) -> Iterator[str]:
    """How much the other estimators of the ablation gain or lose, over all data sets and targets."""
    told = {
        "linear logistic instead of monotone": "Learning with a linear logistic regression",
        "boosted trees instead of monotone": "Learning with boosted trees",
        "with KL₁ and KL₂ added": "Adding KL₁ and KL₂",
        "all of it to the best candidate": "Giving all of P(enrolled) to the best candidate",
    }
    for name, words in told.items():
        pairs = [
            (ablation[name], ablation["HolUE-plus"])
            for _, point, _ in _points(documents)
            if name in (ablation := point["ablation"])
        ]
        known = {
            measure: [
                one[measure] - whole[measure]
                for one, whole in pairs
                if one[measure] is not None and whole[measure] is not None
            ]
            for measure in ("prr_f1", "calibration_error")
        }
        if known["prr_f1"] and known["calibration_error"]:
            ratio, error = known["prr_f1"], known["calibration_error"]
            yield (
                f"{words} changes PRR of F1 by {min(ratio):+.3f} to {max(ratio):+.3f} and the calibration error by "
                f"{min(error):+.3f} to {max(error):+.3f}."
            )


def _kinds_of_error(document: Document) -> str:
    curves = _middle(document)["rejection_curves"]
    fractions = curves["filtered_fraction"]
    place = min(range(len(fractions)), key=lambda i: abs(fractions[i] - FILTERED))
    names = {**_variant(document, MAIN)["methods"], "random": "blind filtering"}
    shown = [key for key in ("random", "scf", "galue", REFERENCE, ABLATED) if key in curves["fpir"]]
    parts = [f"{names[key]} {curves['fpir'][key][place]:.3f} and {curves['fnir'][key][place]:.3f}" for key in shown]
    kept = f"with {FILTERED:.0%} filtered at {_target(document)}"
    return f"**FPIR and FNIR that are left on {document['name']}** {kept}: {', '.join(parts)}."


def _reached(documents: Sequence[Document]) -> list[str]:
    """The table of reached FPIR, for runs that have both ways."""
    lines = []
    for document in documents:
        held = next((one for one in document["variants"] if one["variant"] == HELD_BY_MODEL), None)
        if held is None:
            continue
        sizes = [held["protocol"][role]["gallery_subjects"] for role in ("development", "evaluation")]
        for point, other in zip(_variant(document, MAIN)["operating_points"], held["operating_points"]):
            cells = [_rate(one["recognition"][rate]) for rate in ("fpir", "dir") for one in (point, other)]
            lines.append(
                f"| {document['name']} | {sizes[0]} to {sizes[1]} | {point['target_fpir']:g} | {' | '.join(cells)} |"
            )
    if not lines:
        return []
    commits = ", ".join(dict.fromkeys(document["versions"]["commit"] for document in documents))
    heads = [f"{rate}, {way}" for rate in ("FPIR", "DIR") for way in ('`hold="fpir"`', "the paper's model")]
    return [
        f"**The FPIR that is reached when the gallery grows, by `hold`; threshold from the development part; commit {commits}**",
        "",
        f"| Data | gallery grows | target | {' | '.join(heads)} |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *lines,
    ]


def _rate(number: Document) -> str:
    if number["value"] is None:
        return "–"
    return f"{number['value']:.3f} ({number['low']:.3f} to {number['high']:.3f})"


def _points(documents: Sequence[Document]) -> Iterator[tuple[str, Document, Mapping[str, str]]]:
    for document in documents:
        main = _variant(document, MAIN)
        for point in main["operating_points"]:
            yield document["name"], point, main["methods"]


def _middle(document: Document) -> Document:
    points = _variant(document, MAIN)["operating_points"]
    middle: Document = points[len(points) // 2]
    return middle


def _target(document: Document) -> str:
    return f"FPIR {_middle(document)['target_fpir']:g}"


def _variant(document: Document, name: str) -> Document:
    found: Document = next(variant for variant in document["variants"] if variant["variant"] == name)
    return found
