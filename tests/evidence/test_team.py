"""Tests of the threads that share a scan."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from holue.evidence import team as module
from holue.evidence.team import team


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_parts(workers: int) -> None:
    with team(workers) as share:
        assert share(lambda part: part * part, range(workers)) == [part * part for part in range(workers)]
        assert share(str, ["a", "b", "c"]) == ["a", "b", "c"]
        assert share(str, []) == []


def test_the_first_part_is_done_by_the_caller_and_the_others_are_not() -> None:
    with team(3) as share:
        first, *others = share(lambda _: threading.get_ident(), range(3))
    assert first == threading.get_ident()
    assert first not in others


def test_an_error_in_any_part_reaches_the_caller() -> None:
    def work(part: int) -> int:
        if part == 1:
            raise ValueError("part 1")
        return part

    with team(2) as share, pytest.raises(ValueError, match="part 1"):
        share(work, range(2))


@pytest.mark.skipif(sys.platform != "linux", reason="threads are placed on Linux only")
def test_a_member_leaves_the_callers_processor_and_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, processors: asked.append(set(processors)))
    monkeypatch.setattr(module, "_processor", lambda: 3)
    with team(2) as share:
        share(abs, [1, 2])
    assert asked == [{0, 5}, {0, 3, 5}]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are placed on Linux only")
def test_with_one_processor_nobody_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, processors: asked.append(set(processors)))
    monkeypatch.setattr(module, "_processor", lambda: 3)
    with team(2) as share:
        share(abs, [1, 2])
    assert asked == []


@pytest.mark.skipif(sys.platform != "linux", reason="threads are placed on Linux only")
def test_a_system_that_forbids_moving_threads_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("not here")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    monkeypatch.setattr(module, "_processor", lambda: min(os.sched_getaffinity(0)))
    with team(2) as share:
        assert share(abs, [-1, -2]) == [1, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="threads are placed on Linux only")
def test_without_a_way_to_ask_for_the_processor_nothing_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_sched_getcpu", lambda: None)
    assert module._processor() is None
    with team(2) as share:
        assert share(abs, [-1, -2]) == [1, 2]
