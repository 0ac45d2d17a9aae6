"""Group commit: who waits at the same time shares a commit, and nobody disturbs the others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holue.errors import InvalidSubjectsError
from holue.store.commit import CommitQueue


class Home:
    """Counts transactions; a commit waits until it is let go."""

    def __init__(self) -> None:
        self.began, self.committed, self.rolled_back = 0, 0, 0
        self.reached, self.go = threading.Event(), threading.Event()
        self.go.set()
        self.failing: Exception | None = None
        self.queue = CommitQueue(self.begin, self.commit, self.rollback)

    def begin(self) -> None:
        self.began += 1

    def commit(self) -> None:
        self.reached.set()
        assert self.go.wait(20)
        if self.failing is not None:
            raise self.failing
        self.committed += 1

    def rollback(self) -> None:
        self.rolled_back += 1

    def call_in_threads(self, works: list[Any]) -> tuple[list[threading.Thread], dict[int, Any]]:
        found: dict[int, Any] = {}

        def call(place: int, work: Any) -> None:
            try:
                found[place] = self.queue.submit(work)
            except Exception as error:
                found[place] = error

        threads = [threading.Thread(target=call, args=entry) for entry in enumerate(works)]
        for thread in threads:
            thread.start()
        return threads, found


def refuse() -> None:
    raise InvalidSubjectsError("refused")


def hold_one_and_queue(home: Home, works: list[Any]) -> dict[int, Any]:
    """One change is in its commit while the others come; then all go on."""
    home.go.clear()
    first, _ = home.call_in_threads([lambda: "first"])
    assert home.reached.wait(20)
    others, found = home.call_in_threads(works)
    while len(home.queue._waiting) < len(works):
        threading.Event().wait(0.001)
    home.go.set()
    for thread in (*first, *others):
        thread.join(20)
        assert not thread.is_alive()
    return found


def test_changes_that_wait_together_share_a_commit() -> None:
    home = Home()
    found = hold_one_and_queue(home, [lambda i=i: i for i in range(6)])
    assert found == {i: i for i in range(6)}
    assert home.committed == 2


def test_a_refused_change_does_not_disturb_the_others() -> None:
    home = Home()
    found = hold_one_and_queue(home, [lambda: 1, refuse, lambda: 2])
    assert (found[0], found[2]) == (1, 2)
    assert isinstance(found[1], InvalidSubjectsError)
    assert home.committed == 2


def test_a_commit_that_fails_is_everybodys_error() -> None:
    home = Home()
    home.failing = OSError("no space")
    found = hold_one_and_queue(home, [lambda: 1, lambda: 2])
    assert all(isinstance(error, OSError) for error in found.values())
    assert home.committed == 0
    home.failing = None
    assert home.queue.submit(lambda: 3) == 3


def test_an_interrupted_caller_blocks_nobody() -> None:
    home = Home()

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        home.queue.submit(interrupt)
    assert home.rolled_back == 1
    assert home.queue.submit(lambda: 1) == 1
