"""Parts: long lists of values, cut so that each part fits into one SQL statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

VALUES = 500
"""The most values in one statement. SQLite before version 3.32 takes at most 999."""


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in order, in parts.

    >>> [len(part) for part in parts(range(1200))]
    [500, 500, 200]
    """
    return (values[start : start + VALUES] for start in range(0, len(values), VALUES))
