"""Findings: what an audit reports, one record per kind.

Every cost is the share of probes it spoils, were every enrolled subject probed equally often by samples like its own (FNIR), or
were strangers like the enrolled (FPIR). It is an estimate from left-out samples at the audit's operating point, and an upper
bound on what repairing the finding would gain, since a probe spared one mistake can meet the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Duplicate:
    """Two subjects who are likely one person; FNIR: left-out samples of either that are taken for the other."""

    first: Any
    second: Any
    score: float  # cosine of the two templates
    probability: float
    cost_fnir: float
    samples: tuple[str, ...]


@dataclass(frozen=True)
class Mislabelled:
    """A sample that is closer to another subject; FNIR: its subject's other samples that fail only because of it."""

    sample: str
    subject: Any
    looks_like: Any
    own_score: float
    other_score: float
    probability: float
    cost_fnir: float
    samples: tuple[str, ...]


@dataclass(frozen=True)
class LookAlike:
    """Two different subjects whose templates would be accepted for each other; FNIR: 2 P(taken) / K."""

    first: Any
    second: Any
    score: float
    probability_taken: float  # that a probe of one is accepted as the other (see confusion.py)
    observed_taken: float  # share of the left-out samples of both that were; 0 where there are none
    cost_fnir: float
    samples: tuple[str, ...]


@dataclass(frozen=True)
class PoorReference:
    """A subject whose reference is of unusually low quality; FNIR: its left-out samples that fail."""

    subject: Any
    quality: float
    typical: float
    deviations: float  # robust standard deviations below typical
    cost_fnir: float
    samples: tuple[str, ...]


@dataclass(frozen=True)
class Hub:
    """A subject that attracts strangers; FPIR: samples of others, their own subject left out, that it is accepted for."""

    subject: Any
    attracted: float  # share of the others whose nearest other subject it is
    times_expected: float  # that share over 1/(K − 1)
    cost_fpir: float
    samples: tuple[str, ...]
