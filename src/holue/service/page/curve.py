"""Curve: expected errors as a picture, points in the coordinates of an SVG."""

from __future__ import annotations

from dataclasses import dataclass

from holue.live.calibration.expected_errors import ExpectedErrors

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 300, 60, 40
POINTS = 100
ENOUGH = 10
"""Answers from which an error rate is drawn."""


@dataclass(frozen=True)
class Point:
    """One place of the handle: the share that is kept, what it costs, and where it is drawn."""

    kept: float
    error: float
    lower: float
    upper: float
    filter: float  # the quality below which the others are filtered
    x: float
    y: float


@dataclass(frozen=True)
class Curve:
    """The whole picture."""

    points: tuple[Point, ...]
    highest: float

    @classmethod
    def of(cls, expected: ExpectedErrors) -> Curve:
        """Of a hundred shares those with enough answers, the smallest share first."""
        shares = [place / POINTS for place in range(1, POINTS + 1) if place / POINTS * len(expected) >= ENOUGH]
        rates = [expected.kept(share) for share in shares]
        highest = max([0.01, *(rate.upper for rate, _ in rates[len(rates) // 4 :])])
        points = tuple(
            Point(
                share, rate.share or 0.0, rate.lower, rate.upper, expected.filter_at(share),
                round(LEFT + share * (WIDTH - LEFT - 10), 1), _height(rate.share or 0.0, highest),
            )
            for share, (rate, _) in zip(shares, rates)
        )  # fmt: skip
        return cls(points, highest)

    def nearest(self, share: float) -> int:
        """The place of the point that keeps about this share."""
        return min(range(len(self.points)), key=lambda place: abs(self.points[place].kept - share), default=0)

    @property
    def line(self) -> str:
        """The error rate, as the points of a polyline."""
        return " ".join(f"{point.x},{point.y}" for point in self.points)

    @property
    def band(self) -> str:
        """The interval, as the points of a polygon."""
        upper = [f"{point.x},{_height(point.upper, self.highest)}" for point in self.points]
        lower = [f"{point.x},{_height(point.lower, self.highest)}" for point in reversed(self.points)]
        return " ".join([*upper, *lower])

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Heights and texts of the vertical axis."""
        return [
            (_height(share * self.highest, self.highest), f"{share * self.highest:.1%}") for share in (0.0, 0.5, 1.0)
        ]


def _height(error: float, highest: float) -> float:
    return round(10 + (1 - min(error / highest, 1.0)) * (HEIGHT - BOTTOM - 10), 1)
