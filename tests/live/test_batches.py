"""A long file is asked in batches: the answers in order, few questions at once, and what was answered is not asked again."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holue.live.batches import PROBES_PER_QUESTION, Batches, digest_of_arrays

N = 5 * PROBES_PER_QUESTION + 7


class Shards:
    """Answers after a moment, counts who waits at once, and fails at one batch where that is wanted."""

    def __init__(self, fail_at: int | None = None, decision: str = "accepted") -> None:
        self.fail_at, self.decision = fail_at, decision
        self.asked: list[int] = []
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, part: slice) -> list[dict[str, Any]]:
        with self._lock:
            self.asked.append(part.start)
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.02 if part.start else 0.1)
        with self._lock:
            self.now -= 1
        if part.start == self.fail_at:
            raise ConnectionError("gone")
        return [{"row": row, "decision": self.decision} for row in range(part.start, part.stop)]


def rows_of(batches: Batches) -> list[int]:
    return [row["row"] for some in batches for row in some]


def test_answers_come_in_order_and_few_are_under_way() -> None:
    shards = Shards()
    assert rows_of(Batches(shards, N, 3, None, {})) == list(range(N))
    assert 1 < shards.most <= 3


def test_an_interrupted_run_continues_where_it_stopped(tmp_path: Path) -> None:
    kept, about = tmp_path / "answers.csv.partial", {"gallery_version": 3}
    with pytest.raises(ConnectionError):
        rows_of(Batches(Shards(fail_at=3 * PROBES_PER_QUESTION), N, 2, kept, about))
    again = Shards()
    batches = Batches(again, N, 2, kept, about)
    assert rows_of(batches) == list(range(N))
    assert min(again.asked) == 3 * PROBES_PER_QUESTION
    batches.forget()
    assert not kept.exists()


def test_answers_of_another_version_are_not_taken_and_incomplete_ones_are_asked_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    rows_of(Batches(Shards(), N, 2, kept, {"gallery_version": 3}))
    other = Shards(decision="incomplete")
    rows_of(Batches(other, N, 2, kept, {"gallery_version": 4}))
    assert len(other.asked) == 6
    again = Shards()
    rows_of(Batches(again, N, 2, kept, {"gallery_version": 4}))
    assert len(again.asked) == 6


def test_probes_are_named_by_their_values() -> None:
    one = np.eye(3, dtype=np.float32)
    assert digest_of_arrays(one, None) == digest_of_arrays(one.copy(), None)
    assert digest_of_arrays(one, None) != digest_of_arrays(one.astype(np.float64), None)
    assert digest_of_arrays(one, None) != digest_of_arrays(one, np.ones(3))
