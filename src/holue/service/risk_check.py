"""Risk check: the risk that was promised for automatic decisions, set against what reviewers found in a random sample of them.

While the sampling share was s_h, N_h answers were given; of a complete random sample of n_h of them k_h were wrong. With the
weights W_h = N_h / N (N over all shares),

    rate = Σ W_h k_h / n_h,    lower = Σ W_h L_h,    upper = Σ W_h U_h,

where [L_h, U_h] are Clopper-Pearson intervals at confidence 1 − α/H each. All H hold at once with probability at least 1 − α, and
then so do the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holue.errors import InvalidParameterError
from holue.recognition.checks import check_share
from holue.recognition.risk.binomial import clopper_pearson

OF_ALL_ANSWERS = ("error", "false-acceptance", "misidentification", "false-rejection")
"""Risks that are rates among all automatic decisions, of which the sample is one."""


@dataclass(frozen=True)
class Stratum:
    """Answers that were given while the sampling share was the same, and the reviewed sample of them."""

    share: float
    answered: int
    reviewed: int
    wrong: int


@dataclass(frozen=True)
class RiskCheck:
    """What was found, with an interval, beside what was promised."""

    risk: str
    promised: float | None
    confidence: float
    rate: float | None  # None where nothing was reviewed
    lower: float
    upper: float
    answered: int  # automatic decisions that the check is about: those given while some were sampled
    reviewed: int
    wrong: int
    waiting: int  # sampled answers that nobody has decided yet

    @property
    def verdict(self) -> Literal["kept", "broken", "open", "no promise"]:
        """Whether the interval lies under the promise, over it, or on both sides."""
        if self.promised is None:
            return "no promise"
        if self.upper <= self.promised:
            return "kept"
        return "broken" if self.lower > self.promised else "open"


def checked_risk(
    strata: Sequence[Stratum],
    *,
    risk: str = "error",
    promised: float | None = None,
    confidence: float = 0.95,
    waiting: int = 0,
) -> RiskCheck:
    """Set what was found against a promise.

    >>> found = checked_risk([Stratum(0.1, 4000, 400, 2)], promised=0.05)
    >>> found.rate, round(found.lower, 4), round(found.upper, 4), found.verdict
    (0.005, 0.0006, 0.0179, 'kept')
    """
    if risk not in OF_ALL_ANSWERS:
        raise InvalidParameterError(
            f"risk must be one of {', '.join(OF_ALL_ANSWERS)}; got {risk!r}, which counts only some of the answers"
        )
    level = check_share("confidence", confidence)
    covered = [one for one in strata if one.answered > 0]
    total = sum(one.answered for one in covered)
    lower = upper = rate = 0.0
    seen = sum(one.answered for one in covered if one.reviewed)
    for one in covered:
        low, high = clopper_pearson(one.wrong, one.reviewed, 1 - (1 - level) / len(covered))
        lower += low * one.answered / total
        upper += high * one.answered / total
        if one.reviewed:
            rate += one.wrong / one.reviewed * one.answered / seen
    return RiskCheck(
        risk, promised, level, rate if seen else None, lower, upper if covered else 1.0, total,
        sum(one.reviewed for one in covered), sum(one.wrong for one in covered), waiting,
    )  # fmt: skip
