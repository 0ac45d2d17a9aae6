"""Expected errors: what the enrolled samples, each left out in turn, say about the answers of a gallery as it is.

Every sample is asked about twice, as a probe of its subject and as a stranger's; so half of the probes are strangers. With the
answers in order of their uncertainty, the error of the first k is

    error(k) = wrong among the first k / k

and the others would be filtered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.live.version import GalleryVersion
from holue.recognition.calibration.leave_one_out import LeftOutProbes, left_out_reading
from holue.recognition.risk.binomial import clopper_pearson
from holue.store.values import Int64Array

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Rate:
    """A share of wrong answers with its exact (Clopper-Pearson) interval; samples of one subject count as independent.

    >>> Rate(0, 10).lower, round(Rate(0, 10).upper, 4)
    (0.0, 0.3085)
    """

    wrong: int
    answers: int

    @property
    def share(self) -> float | None:
        """Wrong answers of all; None where there is none."""
        return self.wrong / self.answers if self.answers else None

    @property
    def lower(self) -> float:
        """The lower end of the interval."""
        return clopper_pearson(self.wrong, self.answers, CONFIDENCE)[0]

    @property
    def upper(self) -> float:
        """The upper end of the interval."""
        return clopper_pearson(self.wrong, self.answers, CONFIDENCE)[1]


@dataclass(frozen=True, eq=False)
class ExpectedErrors:
    """Rates at the operating point, and wrong answers among the most certain ones."""

    version: int
    calibration: int | None
    fpir: Rate
    fnir: Rate
    uncertainty: Float64Array  # (n,) ascending
    quality: Float64Array  # (n,) of the same answers: what a filter compares
    wrong: Int64Array  # (n,) wrong answers among the first 1, 2, … n
    source: str  # what the calibration was learned from, where these are the same samples

    @classmethod
    def of(cls, version: GalleryVersion, left_out: LeftOutProbes) -> ExpectedErrors:
        """Ask a version about its own samples."""
        settings, state = version.settings, version.moment.state
        reading, rows, _ = left_out_reading(
            left_out.left, state.point, settings.temperature, strangers=left_out.strangers, threads=settings.threads
        )
        rating = state.quality_of(settings.method).rate(reading)
        accepted, mated = reading.accepted, rows >= 0
        right_name = reading.evidence.top_index[:, 0] == rows
        wrong = np.where(accepted, ~mated | ~right_name, mated)
        order = np.argsort(rating.uncertainty, kind="stable")
        return cls(
            version.version, version.calibration,
            Rate(int((accepted & ~mated).sum()), int((~mated).sum())),
            Rate(int((wrong & mated).sum()), int(mated.sum())),
            np.asarray(rating.uncertainty[order], np.float64), np.asarray(rating.quality[order], np.float64),
            np.cumsum(wrong[order]).astype(np.int64),
            "" if version.calibrated is None else version.calibrated.entry.source,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.wrong)

    def kept(self, share: float) -> tuple[Rate, float]:
        """The errors among the most certain ``share`` of the answers, and the largest uncertainty among these."""
        count = self._count(share)
        return Rate(int(self.wrong[count - 1]), count), float(self.uncertainty[count - 1])

    def filter_at(self, share: float) -> float:
        """The quality below which answers are filtered where the most certain ``share`` of them is kept."""
        return float(self.quality[: self._count(share)].min())

    def filtered_below(self, quality: float) -> Rate:
        """The errors among the answers that a filter at a quality keeps."""
        kept = self.quality >= quality
        return Rate(int(np.diff(self.wrong, prepend=0)[kept].sum()), int(kept.sum()))

    def _count(self, share: float) -> int:
        return min(len(self), max(1, round(share * len(self))))
