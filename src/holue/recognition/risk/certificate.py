"""RiskCertificate: which filter threshold was chosen, what is guaranteed at it, and on what evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from holue.errors import CalibrationDataError
from holue.recognition.risk.decisions import RISKS


class CannotCertifyError(CalibrationDataError):
    """The development set does not certify the target; the attributes say what would.

    ``needed_without_error``: the fewest automatic decisions that could certify it, all of them right.
    ``needed_probes``: with about how many development probes the target would be certified in four of five cases, judging by
    the errors among all answers, and ``more_probes`` how many more than there are; None where no number would do.
    ``needed_range``: the same at the ends of what the errors seen leave open, with probability 0.8: ten errors know a rate to a
    third of itself, and none hardly at all. An end is None where no number would do.
    """

    COUNTS = ("needed_without_error", "needed_probes", "more_probes", "needed_range")

    def __init__(
        self,
        message: str,
        *,
        needed_without_error: int,
        needed_probes: int | None,
        more_probes: int | None,
        needed_range: tuple[int | None, int | None],
    ) -> None:
        super().__init__(message)
        self.needed_without_error = needed_without_error
        self.needed_probes = needed_probes
        self.more_probes = more_probes
        self.needed_range = needed_range


@dataclass(frozen=True)
class RiskCertificate:
    """A filter threshold with its guarantee: answers of quality under ``filter_below`` are filtered.

    With a ``confidence_level`` it reads: with that confidence over the draw of the development set, the risk among
    automatic decisions is at most ``target_level``. Without one (None) it is an expectation: the share of all counted
    probes that are decided automatically *and* wrongly is at most ``target_level`` on average.
    """

    risk: str
    target_level: float
    confidence_level: float | None
    unit: str
    test: str
    filter_below: float  # −inf where nothing needs to be filtered
    filtered_share: float  # of the development probes
    n_probes: int  # development probes that the risk counts
    n_units: int
    n_decided: int  # of them, decided automatically
    n_wrong: int  # of those, wrongly
    n_gallery: int

    @property
    def observed_risk(self) -> float:
        """``n_wrong / n_decided`` on the development set, 0 where nothing was decided: an observation, not the guarantee."""
        return self.n_wrong / self.n_decided if self.n_decided else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; ``filter_below`` is None where nothing is filtered."""
        plain = asdict(self)
        plain["filter_below"] = self.filter_below if np.isfinite(self.filter_below) else None
        return {**plain, "observed_risk": self.observed_risk, "definition": RISKS[self.risk]}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> RiskCertificate:
        """Take back what :meth:`to_dict` gave."""
        fields = {name: plain[name] for name in cls.__dataclass_fields__}
        if fields["filter_below"] is None:
            fields["filter_below"] = -np.inf
        return cls(**fields)

    def __str__(self) -> str:
        if self.confidence_level is None:
            claim = f"in expectation, at most {self.target_level:g} of all counted probes are decided automatically and wrongly"
        else:
            claim = f"with confidence {self.confidence_level:g}, at most {self.target_level:g}"
        where = f"quality below {_number(self.filter_below)}" if np.isfinite(self.filter_below) else "nothing"
        return (
            f"risk {self.risk!r} ({RISKS[self.risk]}): {claim}\n"
            f"  filter {where}: {self.filtered_share:.1%} of the development probes\n"
            f"  by {self.unit}, {self.test}: {self.n_wrong} wrong of {self.n_decided} automatic decisions "
            f"({self.n_units} {self.unit}s, gallery of {self.n_gallery})"
        )


def _number(quality: float) -> str:
    # Probabilities crowd just under 1, where rounding would hide the threshold.
    return f"1 − {1 - quality:.3g}" if 0.999 < quality < 1 else f"{quality:.6g}"
