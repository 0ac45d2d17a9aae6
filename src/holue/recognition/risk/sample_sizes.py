"""Sample sizes: how many people a guarantee needs, by target, confidence and the error rate that they turn out to have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holue.recognition.risk.betting import BettingTest
from holue.recognition.risk.binomial import BinomialTest
from holue.recognition.risk.fixed_sequence import RiskTest, units_tolerating

TARGETS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
CONFIDENCES = (0.9, 0.95, 0.99)
RATES = (0.0, 0.25, 0.5)
"""Error rates, as parts of the target."""


@dataclass(frozen=True)
class SampleSize:
    """Automatic decisions that certify a target at an error rate: independent probes, or people with several probes each."""

    target_level: float
    confidence_level: float
    error_rate: float
    probes: int  # one of each person: exact binomial tail
    subjects: int  # decided in all of their probes, right or wrong as a whole: betting


def people_needed(
    targets: Sequence[float] = TARGETS, confidences: Sequence[float] = CONFIDENCES, rates: Sequence[float] = RATES
) -> tuple[SampleSize, ...]:
    """One row for every target, confidence and error rate (as a part of the target).

    >>> people_needed([0.01], [0.95], [0.0])
    (SampleSize(target_level=0.01, confidence_level=0.95, error_rate=0.0, probes=299, subjects=366),)
    """
    return tuple(
        SampleSize(
            target,
            confidence,
            rate * target,
            units_at_rate(BinomialTest, rate * target, target, confidence),
            units_at_rate(BettingTest, rate * target, target, confidence),
        )
        for target in targets
        for confidence in confidences
        for rate in rates
    )


def units_at_rate(test: type[RiskTest], rate: float, target: float, confidence: float) -> int:
    """The fewest decided units that certify the target although a share ``rate`` of them, below the target, is wrong.

    >>> units_at_rate(BinomialTest, 0.005, 0.01, 0.95)
    1182
    """
    errors = 0
    while (units := units_tolerating(test, errors, target, confidence)) * rate > errors:
        errors += 1
    return units


def size_table(sizes: Sequence[SampleSize]) -> str:
    """The rows as a table."""
    lines = ["target  confidence  errors   probes, one each  people, several probes"]
    lines += [
        f"{size.target_level:<6g}  {size.confidence_level:<10g}  {size.error_rate:<7.3%}  {size.probes:>16}  {size.subjects:>22}"
        for size in sizes
    ]
    return "\n".join(lines)
