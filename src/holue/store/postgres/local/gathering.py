"""Gathering: rows that arrive in small pieces, put together to ranges of a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holue.errors import CorruptStoreError
from holue.store.sqlite.files.block import Block
from holue.store.sqlite.home import Home


class Gathering:
    """Up to ``at_most`` bytes of rows, in memory that is used again and again; a full one is appended to the home's ranges."""

    def __init__(self, home: Home, at_most: int) -> None:
        self._home, self._width = home, home.dim * 4
        n = max(1, at_most // self._width)
        kinds = (np.int64, np.int64, float, float, np.uint32, np.uint32, np.uint32)
        self._arrays: list[Any] = [*(np.empty(n, kind) for kind in kinds), np.empty((n, home.dim), np.float32)]
        self._n, self._room = 0, n

    def add(self, columns: Sequence[Any]) -> None:
        """Add rows as the server's table of embeddings gives them, in ascending order of their samples."""
        samples, subjects, times, kappa, media, by, crc, data = columns
        if set(map(len, data)) != {self._width}:
            cut = next(sample for sample, row in zip(samples, data, strict=True) if len(row) != self._width)
            raise CorruptStoreError(f"sample {cut} on the server is cut off; restore the gallery from a snapshot")
        rows = np.frombuffer(b"".join(data), np.float32).reshape(len(data), -1)
        enrollers = self._home.codes([name or "" for name in by])
        given = [samples, subjects, times, kappa, crc, self._home.codes(media), enrollers, rows]
        done = 0
        while done < len(rows):
            n = min(len(rows) - done, self._room - self._n)
            for array, values in zip(self._arrays, given, strict=True):
                array[self._n : self._n + n] = values[done : done + n]
            self._n, done = self._n + n, done + n
            if self._n == self._room:
                self.flush()

    def flush(self) -> None:
        """Append what there is."""
        if self._n:
            self._home.ranges.append(Block(*(array[: self._n] for array in self._arrays)))
            self._n = 0
