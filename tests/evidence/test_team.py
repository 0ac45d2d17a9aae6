"""Tests of the threads that share a scan."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest

from holue.evidence.threads import thread_pool as module
from holue.evidence.threads.thread_pool import team


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


def test_helpers_are_kept_and_lent_to_one_team_at_a_time() -> None:
    with team(3) as share:
        before = share(lambda _: threading.get_ident(), range(3))
    with team(3) as share:
        assert set(share(lambda _: threading.get_ident(), range(3))) == set(before)

    def nested(part: int) -> list[int]:
        with team(3) as share:
            return share(lambda inner: 10 * part + inner, range(3))

    with team(3) as share:
        assert share(nested, range(3)) == [[0, 1, 2], [10, 11, 12], [20, 21, 22]]


def test_a_result_that_an_interrupted_caller_left_is_nobodys() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(part: int) -> int:
        if part == 1:
            begun.set()
            go_on.wait(10)
        return part

    helper = module._hired()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_hired", lambda: helper)
        patch.setattr(helper, "end", lambda: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt), team(2) as share:
            share(work, range(2))
    assert begun.wait(10)
    go_on.set()
    assert helper not in module._idle
    helper._thread.join(10)
    assert not helper._thread.is_alive()
    with team(2) as share:
        assert share(abs, [-5, -6]) == [5, 6]


def test_an_idle_helper_holds_on_to_nothing() -> None:
    class Part:
        """Something large."""

    parts = [Part(), Part()]
    seen = [weakref.ref(part) for part in parts]
    with team(2) as share:
        share(lambda part: None, parts)
        share(lambda part: None, [0, 0])  # when it has begun this, it is done with that
    parts.clear()
    gc.collect()
    assert [part() for part in seen] == [None, None]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are copied on Unix only")
def test_a_copied_process_hires_its_own_helpers() -> None:
    code = (
        "import os\n"
        "from holue.evidence.threads.thread_pool import team\n"
        "def scan():\n"
        "    with team(2) as share:\n"
        "        return share(abs, [-1, -2])\n"
        "assert scan() == [1, 2]\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if scan() == [1, 2] else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60)


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
