"""Installed scores: quality scores that other packages offer through the entry point group ``holue.scores``.

In the ``pyproject.toml`` of such a package:

    [project.entry-points."holue.scores"]
    presence = "my_scores:PresenceQuality"
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from holue.recognition.quality import SCORES
from holue.recognition.quality.score import QualityScore

GROUP = "holue.scores"
_TAKEN = {*SCORES, "all", "scf", "pfe", "sf", "own-quality"}


@dataclass(frozen=True)
class InstalledScore:
    """A score of another package; ``score`` is None where it is broken, and ``error`` says why, naming the package."""

    key: str
    package: str
    score: type[QualityScore] | None = None
    error: str | None = None


def installed_scores() -> tuple[InstalledScore, ...]:
    """Every score that installed packages offer, by name; what a broken package raises is told, not raised."""
    found: dict[str, InstalledScore] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, _package(entry))):
        # A package that is on the path twice is found twice.
        twice = found.get(entry.name)
        if twice is None:
            found[entry.name] = _loaded(entry)
        elif twice.package != _package(entry):
            both = f"{twice.package} and {_package(entry)}"
            found[entry.name] = InstalledScore(
                entry.name, both, error=f"packages {both} both offer the score {entry.name!r}; uninstall one of them"
            )
    return tuple(found.values())


def _loaded(entry: EntryPoint) -> InstalledScore:
    package = _package(entry)
    start = f"package {package} offers the score {entry.name!r} as {entry.value}"

    def broken(why: str) -> InstalledScore:
        return InstalledScore(entry.name, package, error=f"{start}, {why}")

    if entry.name.lower() in _TAKEN:
        return broken("but holue has a method of that name; its authors must choose another")
    try:
        score = entry.load()
    except Exception as error:  # whatever a foreign package raises when it is imported
        return broken(f"which cannot be imported ({type(error).__name__}: {error}); update or uninstall it")
    if not (isinstance(score, type) and issubclass(score, QualityScore)):
        return broken("which is no class derived from holue.recognition.quality.QualityScore; update or uninstall it")
    return InstalledScore(entry.name, package, score)


def _package(entry: EntryPoint) -> str:
    return "of unknown name" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
