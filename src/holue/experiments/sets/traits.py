"""Traits: what is known of the people or animals behind the probes (sex, age band), as groups of a protocol."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from holue.evaluation.protocol import ProtocolPart

Traits = Mapping[str, Mapping[str, str]]
"""Name of a trait → subject → value."""


def with_traits(part: ProtocolPart, traits: Traits) -> ProtocolPart:
    """The part with a grouping of its probes for every trait."""
    people = part.probe_subjects.tolist()
    return replace(part, more_groups={name: np.array([of[who] for who in people]) for name, of in traits.items()})


def most_common(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Subject → its most frequent value, the smaller of equals: labels of single images disagree now and then.

    >>> most_common([("Kiki", "f"), ("Kiki", "m"), ("Kiki", "f"), ("Max", "m")])
    {'Kiki': 'f', 'Max': 'm'}
    """
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for subject, value in values:
        seen[subject][value] += 1
    return {subject: min(count, key=lambda value: (-count[value], value)) for subject, count in seen.items()}
