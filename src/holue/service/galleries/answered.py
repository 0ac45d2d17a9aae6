"""Answered: what a scan answered to the probes of one or several requests."""

from __future__ import annotations

from dataclasses import dataclass

from holue.live.version import GalleryVersion
from holue.recognition.answer.identifications import Identifications


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers, in the order of the probes, and the version that gave them."""

    version: GalleryVersion
    answers: Identifications
    waited: float  # seconds until the scan began
    scanned: float  # seconds of the scan
    batch: int  # probes that shared it

    def part(self, rows: slice | list[int], waited: float) -> Answered:
        """The answers to some of the probes."""
        return Answered(self.version, self.answers[rows], waited, self.scanned, self.batch)
