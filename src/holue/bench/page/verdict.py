"""Verdict: one target beside what was measured for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """One target, the worst that was measured for it, and where."""

    target: str
    measured: str
    where: str
    met: bool
