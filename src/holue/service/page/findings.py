"""Findings of an audit as cards: what was found, the pictures side by side, and what can be done about it with one key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from holue.recognition.audit.audit import GalleryAudit
from holue.service.ledger.dismissals import Finding
from holue.store.values import Subject

SHOWN = 30
"""Cards of one screen; those that remain come when these are answered."""


@dataclass(frozen=True)
class Side:
    """A subject on one side of a card, and the sample that is shown of it."""

    subject: Subject
    sample: int | None


@dataclass(frozen=True)
class Action:
    """A button: a key, its name, and what the form sends."""

    name: str
    key: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class Card:
    """One finding."""

    finding: Finding
    title: str
    text: str
    sides: tuple[Side, ...]
    actions: tuple[Action, ...]


Find = Callable[[Any], Subject | None]
"""The subject enrolled under an id; None where it has left since the audit."""


def cards(audit: GalleryAudit, find: Find, dismissed: set[Finding]) -> list[Card]:
    """The findings that still need an answer, most likely first within each kind."""
    found = [card for card in _cards(audit, find) if card.finding not in dismissed]
    return found[:SHOWN]


def _cards(audit: GalleryAudit, find: Find) -> Iterator[Card]:
    for one in audit.duplicates:
        first, second = find(one.first), find(one.second)
        if first is not None and second is not None:
            yield _pair(
                "duplicate", first, second, one.samples, f"{first.id} and {second.id} may be one",
                f"Probability {one.probability:.2f}; the cosine of their templates is {one.score:.3f}.", "They are one: merge",
            )  # fmt: skip
    for fault in audit.mislabelled:
        own, other = find(fault.subject), find(fault.looks_like)
        if own is not None and other is not None and fault.sample.isdecimal():
            yield _moved(own, other, int(fault.sample), fault.probability)
    for pair in audit.look_alikes:
        first, second = find(pair.first), find(pair.second)
        if first is not None and second is not None:
            yield _pair(
                "look-alike", first, second, pair.samples, f"{first.id} and {second.id} look alike",
                f"A probe of one is accepted as the other with probability {pair.probability_taken:.2f}. More samples of both "
                "help; so does a person who looks at such answers.", None,
            )  # fmt: skip
    for poor in audit.poor_references:
        subject = find(poor.subject)
        if subject is not None:
            yield _single(
                "poor", subject, poor.samples, f"The reference of {subject.id} is poor",
                f"Its quality is {poor.quality:.3g}, typical is {poor.typical:.3g}. Enrol a better sample.",
            )  # fmt: skip
    for hub in audit.hubs:
        subject = find(hub.subject)
        if subject is not None:
            yield _single(
                "hub", subject, hub.samples, f"{subject.id} attracts strangers",
                f"It is the nearest subject of {hub.times_expected:.0f} times as many samples as expected. Look at its samples.",
            )  # fmt: skip


def _pair(
    kind: str, first: Subject, second: Subject, samples: tuple[str, ...], title: str, text: str, merging: str | None
) -> Card:
    finding = Finding(kind, min(first.number, second.number), max(first.number, second.number))
    shown = [int(sample) for sample in samples if sample.isdecimal()]
    sides = tuple(
        Side(subject, shown[place] if place < len(shown) else None) for place, subject in enumerate((first, second))
    )
    keep = _dismiss(finding, "They are two" if merging else "Seen")
    if merging is None:
        return Card(finding, title, text, sides, (keep,))
    merge = Action(merging, "a", {"action": "merge", **_fields(finding)})
    return Card(finding, title, text, sides, (merge, keep))


def _moved(own: Subject, other: Subject, sample: int, probability: float) -> Card:
    finding = Finding("mislabelled", sample, other.number)
    return Card(
        finding, f"A sample of {own.id} looks like {other.id}", f"Probability {probability:.2f} that its name is wrong.",
        (Side(own, sample), Side(other, None)),
        (
            Action(f"It is {other.id}: move it", "a", {"action": "move", "owner": own.number, **_fields(finding)}),
            Action(f"Take it away from {own.id}", "r", {"action": "remove", **_fields(finding)}),
            _dismiss(finding, "The name is right"),
        ),
    )  # fmt: skip


def _single(kind: str, subject: Subject, samples: tuple[str, ...], title: str, text: str) -> Card:
    finding = Finding(kind, subject.number, 0)
    shown = next((int(sample) for sample in samples if sample.isdecimal()), None)
    return Card(finding, title, text, (Side(subject, shown),), (_dismiss(finding, "Seen"),))


def _dismiss(finding: Finding, name: str) -> Action:
    return Action(name, "x", {"action": "dismiss", **_fields(finding)})


def _fields(finding: Finding) -> dict[str, Any]:
    return {"kind": finding.kind, "first": finding.first, "second": finding.second}
