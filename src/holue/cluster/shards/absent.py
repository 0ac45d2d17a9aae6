"""Absent: a shard's answer where it has not the version that was asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Absent:
    """The version that was asked for is not here; these are, the newest last."""

    known: tuple[str, ...]
