"""LiveStatus: an open gallery in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from holue.live.version import GalleryVersion
from holue.recognition.calibration.recognised import Recognised
from holue.recognition.model.fpir_interval import FpirInterval
from holue.recognition.saved.recognizer_folder import plain_settings
from holue.recognition.search.search_report import SearchReport
from holue.store.values import Problem, Status


@dataclass(frozen=True, eq=False)
class LiveStatus:
    """The store, the version that answers and its calibration."""

    store: Status
    version: int
    subjects: int
    read_only: bool
    calibration: int | None
    calibrated_at: int | None  # the version it was learned from
    threshold: float | None
    target_fpir: float | None
    achieved_fpir: float | None
    expected_fpir: FpirInterval | None  # over people, at this gallery's size
    shortfall: str | None  # what the people of the calibration cannot show about the target
    recognised: Recognised | None  # of the samples of enrolled people that it was learned from
    doubts: tuple[str, ...]
    settings: dict[str, Any]
    missing: tuple[int, ...] = ()  # numbers of subjects that could not be read, wholly or in part
    search: SearchReport | None = None  # how it is read; None where fewer than two are enrolled
    damage: tuple[Problem, ...] = ()  # found at opening, where the rest of a damaged gallery was asked for

    @classmethod
    def of(cls, store: Status, now: GalleryVersion, *, read_only: bool) -> LiveStatus:
        """Of the version that answers now."""
        point = None if now.state is None else now.state.operating_point
        return cls(
            store,
            now.version,
            len(now),
            read_only,
            now.calibration,
            None if now.calibrated is None else now.calibrated.entry.made_at,
            None if point is None else point.threshold,
            None if point is None else point.target_fpir,
            None if point is None else point.achieved_fpir,
            None if point is None else point.fpir_interval,
            None if point is None else point.shortfall,
            None if now.state is None else now.state.recognised,
            tuple(str(doubt) for doubt in now.doubts()),
            plain_settings(now.settings),
            now.missing.subjects,
            None if now.state is None else now.moment.search_report,
            now.missing.damage,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)
