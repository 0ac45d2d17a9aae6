"""SearchReport: how a gallery is read now, why, and what an index misses."""

from __future__ import annotations

from dataclasses import dataclass

from holue.errors import UnsuitableSearchError
from holue.evidence.ivf.missed_mates import MISSED
from holue.recognition.search.choice import BITS_FROM_FEATURES
from holue.recognition.search.search import SearchKind

MOST_LISTS = 0.5
"""The share of the lists from which on reading them gains nothing over codes of everybody."""


@dataclass(frozen=True)
class SearchReport:
    """``lists``, ``lists_read`` and ``missed`` are of the index with the largest share read; None where there is no index.

    ``bits`` and ``one_bit_share`` are of the largest prepared segment of a binary search.
    """

    asked: SearchKind
    kind: SearchKind
    reason: str
    dim: int
    threshold: float | None = None
    lists: int | None = None
    lists_read: int | None = None  # by each probe
    missed: float | None = None  # the measured share of mates at the threshold that are not found
    bits: int | None = None  # per feature
    one_bit_share: float | None = None  # of the rows: what a stranger's decision would need with one bit, as measured

    @property
    def reads_most(self) -> bool:
        """Whether an index has to read most of its lists to keep its promise."""
        return self.lists is not None and self.lists_read is not None and self.lists_read > MOST_LISTS * self.lists

    @property
    def better(self) -> SearchKind:
        """The search to use instead of lists."""
        return "binary" if self.dim >= BITS_FROM_FEATURES else "int8"

    @property
    def doubt(self) -> str | None:
        """Why another search is better now."""
        if not self.reads_most:
            return None
        return (
            f"search='approximate' has to read {self.lists_read} of {self.lists} lists to miss at most {MISSED:g} of the mates "
            f"at the threshold {self.threshold:.3f}, as measured on rows of this gallery; search={self.better!r} looks at "
            "everybody in less time"
        )

    def refuse(self) -> None:
        """An error where the index gains nothing."""
        if self.doubt is not None:
            raise UnsuitableSearchError(f"{self.doubt}: set search={self.better!r} or search='auto'")

    def __str__(self) -> str:
        if self.bits is not None:
            bits = f"{self.bits} bit{'s' if self.bits > 1 else ''} per feature"
            if self.one_bit_share is not None:
                bits += f", since with one a stranger's decision needs {self.one_bit_share:.2%} of the rows"
            return f"{self.kind} ({self.reason}): {bits}"
        if self.lists is None:
            return f"{self.kind} ({self.reason})"
        missed = "unknown without a threshold" if self.missed is None else f"{self.missed:.2g} (at most {MISSED:g})"
        read = f"reads {self.lists_read} of {self.lists} lists"
        return f"{self.kind} ({self.reason}): {read}, mates missed at the threshold: {missed}"
