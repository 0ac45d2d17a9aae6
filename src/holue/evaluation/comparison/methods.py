"""Method: a way to order probes by reliability, as an evaluation compares them.

A method is a score of :data:`holue.recognition.quality.SCORES` or of an installed package, computed from what the gallery says
about a probe, or a column of sample quality that came with the files. The recogniser's score "quality" reads the concentration
κ_x, which the paper calls SCF; here it goes by that name, and ``quality`` selects every sample quality that the files have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holue.errors import InvalidParameterError
from holue.evaluation.protocol import IdentificationProtocol
from holue.recognition.quality import SCORES, QualityScore
from holue.recognition.quality.installed import installed_scores

ALL, SAMPLE_QUALITIES = "all", "quality"
"""Names that select several methods."""

_FILE_KEYS = {"pfe": "variance", "scale": "scale", "quality": "quality"}
"""The key of the user's file behind each quality column."""


@dataclass(frozen=True)
class Method:
    """One row of the tables: ``key`` selects it, ``name`` is what the paper calls it."""

    key: str
    name: str
    score: type[QualityScore] | None = None
    column: str | None = None

    @property
    def is_sample_quality(self) -> bool:
        """Whether it reads the sample alone, whoever is enrolled."""
        return self.column is not None or self.key == "scf"

    @property
    def is_probability(self) -> bool:
        """Whether its quality is a probability of being right."""
        return self.score is not None and self.score.is_probability

    @property
    def needs_fit(self) -> bool:
        """Whether it learns from the development part."""
        return self.score is not None and self.score.needs_fit

    @property
    def needs_concentration(self) -> bool:
        """Whether it needs κ_x of every probe."""
        return self.score is not None and self.score.needs_concentration


@dataclass(frozen=True)
class Skipped:
    """A method that could not be evaluated, and why."""

    key: str
    name: str
    reason: str


def grouped_reasons(skipped: Iterable[Skipped]) -> dict[str, str]:
    """Names of skipped methods by their reason: several methods often lack the same thing.

    >>> grouped_reasons([Skipped("scf", "SCF", "no κ"), Skipped("pfe", "PFE", "no σ²"), Skipped("holue", "HolUE-MLP", "no κ")])
    {'no κ': 'SCF, HolUE-MLP', 'no σ²': 'PFE'}
    """
    names: dict[str, list[str]] = {}
    for method in skipped:
        names.setdefault(method.reason, []).append(method.name)
    return {reason: ", ".join(group) for reason, group in names.items()}


def known_methods(protocol: IdentificationProtocol | None = None) -> tuple[Method, ...]:
    """Every method, in the order of the paper's Table 1, then those it does not have.

    Columns of the protocol that go by another name than the format's (say ``norm``) are methods too.

    >>> [method.key for method in known_methods()][:5]
    ['pfe', 'scf', 'sf', 'own-quality', 'acceptance']
    """
    named = {"pfe": Method("pfe", "PFE", column="pfe"), "concentration": Method("scf", "SCF", SCORES["quality"])}
    named |= {
        "scale": Method("sf", "SF", column="scale"),
        "quality": Method("own-quality", "Quality", column="quality"),
    }
    columns = () if protocol is None else (*protocol.quality_names, *protocol.unpaired_qualities)
    others = (Method(column, column, column=column) for column in columns if column not in named)
    scores = (Method(key, score.name, score) for key, score in SCORES.items() if key != "quality")
    foreign = (Method(one.key, one.score.name, one.score) for one in installed_scores() if one.score is not None)
    return (*named.values(), *others, *scores, *foreign)


def choose_methods(
    names: str | Iterable[str], protocol: IdentificationProtocol
) -> tuple[tuple[Method, ...], tuple[Skipped, ...]]:
    """The methods of these names that the protocol has the data for, and those it lacks it for, with the reason.

    A name is a method's key or the paper's name in any case, or ``all``, or ``quality`` for every sample quality.
    """
    known = known_methods(protocol)
    asked = [names] if isinstance(names, str) else list(names)
    broken = _broken(asked)
    wanted = _selected(asked, known)
    missing = {method: _why_missing(method, protocol) for method in known if method in wanted}
    chosen = tuple(method for method, reason in missing.items() if reason is None)
    skipped = (*(Skipped(m.key, m.name, reason) for m, reason in missing.items() if reason is not None), *broken)
    if not chosen:
        reasons = "; ".join(f"{method.name}: {method.reason}" for method in skipped)
        raise InvalidParameterError(f"methods: none of them can be evaluated on {protocol.name!r}: {reasons}")
    return chosen, skipped


def _broken(names: list[str]) -> tuple[Skipped, ...]:
    """Scores of other packages that cannot be used: an error where one is asked for by name, else skipped among all."""
    asked = {str(name).strip().lower() for name in names}
    broken = [one for one in installed_scores() if one.error is not None]
    for one in broken:
        if one.key.lower() in asked and one.key.lower() not in SCORES:
            raise InvalidParameterError(f"methods: {one.key!r} cannot be used: {one.error}")
    return tuple(Skipped(one.key, one.key, one.error or "") for one in broken if ALL in asked)


def _selected(names: list[str], known: tuple[Method, ...]) -> set[Method]:
    if not names:
        raise InvalidParameterError(f"methods must name at least one method, or {ALL!r}")
    selected: set[Method] = set()
    for name in names:
        wanted = str(name).strip().lower()
        found = {method for method in known if wanted in (method.key.lower(), method.name.lower(), ALL)}
        if wanted == SAMPLE_QUALITIES:
            found = {method for method in known if method.is_sample_quality}
        if wanted == ALL:
            found = set(known)
        if not found:
            keys = ", ".join(method.key for method in known)
            raise InvalidParameterError(
                f"methods: {name!r} is not known; choose from {keys}; or {ALL!r}, or {SAMPLE_QUALITIES!r} for every "
                "sample quality the files have"
            )
        selected |= found
    return selected


def _why_missing(method: Method, protocol: IdentificationProtocol) -> str | None:
    """Why this protocol cannot be evaluated by the method, or None where it can."""
    parts = protocol.parts.values() if method.needs_fit else (protocol.evaluation,)
    if method.needs_concentration:
        for part, role in ((protocol.evaluation, "evaluation"), (protocol.development, "development")):
            if part in parts and part.probes.concentrations is None:
                return f"the {role} probes have no key 'concentration'"
    if method.column is not None and method.column not in protocol.evaluation.qualities:
        return f"the evaluation probes have no key {_FILE_KEYS.get(method.column, method.column)!r}"
    return None
