"""Batches: a long file of probes, asked batch by batch; several are under way at once, and finished ones are kept on disk."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holue.artifact import write_text

PROBES_PER_QUESTION = 1024
"""Probes in one question, so that a long file shows progress."""
QUESTIONS_UNDER_WAY = 3
"""Questions at once: shards scan one while the answers to another are made, and no more than that waits in their memory."""
ABOUT = "about.json"

Rows = list[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Batches:
    """``answer`` is asked about each run of ``PROBES_PER_QUESTION`` rows, and the answers come in the order of the rows.

    With ``kept``, a folder, each batch is written there as soon as it and those before are answered. A later run that is
    ``about`` the same probes, gallery version and calibration reads them.
    """

    answer: Callable[[slice], Rows]
    n_rows: int
    under_way: int
    kept: Path | None
    about: dict[str, Any]

    def __iter__(self) -> Iterator[Rows]:
        self._prepare()
        waiting: deque[tuple[int, Future[Rows] | None]] = deque()
        with ThreadPoolExecutor(self.under_way, thread_name_prefix="holue-batch") as pool:
            try:
                for first in range(0, self.n_rows, PROBES_PER_QUESTION):
                    part = slice(first, min(first + PROBES_PER_QUESTION, self.n_rows))
                    waiting.append((first, None if self._known(first) else pool.submit(self.answer, part)))
                    if len(waiting) > self.under_way:
                        yield self._taken(*waiting.popleft())
                while waiting:
                    yield self._taken(*waiting.popleft())
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def forget(self) -> None:
        """Delete what was kept: the answers are elsewhere now."""
        if self.kept is not None:
            shutil.rmtree(self.kept, ignore_errors=True)

    def _prepare(self) -> None:
        if self.kept is None:
            return
        told = json.dumps(self.about, sort_keys=True)
        known = self.kept / ABOUT
        if not known.is_file() or known.read_text(encoding="utf-8") != told:
            self.forget()
            self.kept.mkdir(parents=True, mode=0o700)
            write_text(known, told)

    def _path(self, first: int) -> Path | None:
        return None if self.kept is None else self.kept / f"{first}.json"

    def _known(self, first: int) -> bool:
        path = self._path(first)
        return path is not None and path.is_file()

    def _taken(self, first: int, asked: Future[Rows] | None) -> Rows:
        path = self._path(first)
        if asked is None:
            assert path is not None
            found: Rows = json.loads(path.read_text(encoding="utf-8"))
            return found
        rows = asked.result()
        if path is not None and not any(row["decision"] == "incomplete" for row in rows):
            write_text(path, json.dumps(rows, allow_nan=False))
        return rows


def digest_of_arrays(*arrays: Any) -> str:
    """What names some probes: a hash of their values."""
    digest = hashlib.sha256()
    for array in arrays:
        given = np.empty(0) if array is None else np.ascontiguousarray(array)
        digest.update(f"{given.dtype.str}{given.shape}".encode())
        digest.update(given.data)
    return digest.hexdigest()
