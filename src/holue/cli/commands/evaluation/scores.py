"""``holue scores``: the quality scores that can be evaluated, and where they come from."""

from __future__ import annotations

from typing import Any

from holue.cli.output import Json, print_json, say
from holue.recognition.quality import SCORES, QualityScore
from holue.recognition.quality.installed import installed_scores


def scores(json: Json = False) -> None:
    """List the quality scores that a recogniser can use: those of holue, and those that installed packages add.

    A package adds one through the entry point group `holue.scores`; it can then be named in `holue evaluate DIR --methods`.
    That command calls the score `quality` scf, as the paper does, and also compares columns of your files: pfe, sf, own-quality.
    A score that cannot be loaded is listed with the reason and its package.
    """
    rows = [_described(key, "holue", score) for key, score in SCORES.items()]
    for one in installed_scores():
        if one.score is not None:
            rows.append(_described(one.key, one.package, one.score))
        else:
            rows.append({"key": one.key, "package": one.package, "error": one.error})
    if json:
        print_json(rows)
        return
    for row in rows:
        if "error" in row:
            say(f"{row['key']:15} not usable: {row['error']}")
        else:
            needs = [word for word, needed in (("κ", row["needs_concentration"]), ("dev/", row["needs_fit"])) if needed]
            told = f"needs {' and '.join(needs)}" if needs else ""
            say(f"{row['key']:15} {row['name']:15} {row['package']:12} {told}".rstrip())


def _described(key: str, package: str, score: type[QualityScore]) -> dict[str, Any]:
    return {
        "key": key,
        "name": score.name,
        "package": package,
        "needs_concentration": score.needs_concentration,
        "needs_fit": score.needs_fit,
        "is_probability": score.is_probability,
    }
