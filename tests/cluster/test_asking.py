"""A question goes to another replica where one is slow, fails or lacks the version; what nobody answers is missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from holue.cluster.asking import UsualTime, ask_all
from holue.cluster.replica import Replica
from holue.cluster.shards.absent import Absent
from holue.cluster.shards.packed import whole
from holue.errors import InvalidEmbeddingsError


class Handle:
    """Answers each call by a function, after a time."""

    def __init__(self, answer: Callable[[], Any], after: float = 0.0) -> None:
        self.answer, self.after, self.calls = answer, after, 0

    def __getattr__(self, method: str) -> Any:
        return self

    def remote(self, *arguments: Any) -> Any:
        return self

    def future(self) -> Future[Any]:
        self.calls += 1
        future: Future[Any] = Future()

        def finish() -> None:
            try:
                future.set_result(whole(self.answer()))
            except Exception as error:
                future.set_exception(error)

        threading.Timer(self.after, finish).start()
        return future


def replica(answer: Callable[[], Any], after: float = 0.0, known: tuple[str, ...] = ("1@0",)) -> Replica:
    return Replica(0, "n", Handle(answer, after), known=known)


def lost() -> Any:
    raise ConnectionError("gone")


def ask(
    *replicas: Replica,
    given_up: set[int] | None = None,
    fed: list[Replica] | None = None,
    asked_before: bool = True,
) -> dict[int, Any]:
    def feed(one: Replica) -> Future[bool]:
        if fed is not None:
            fed.append(one)
        one.known = ("1@0",)
        future: Future[bool] = Future()
        future.set_result(True)
        return future

    usual = UsualTime()
    if asked_before:
        usual.note(1, 0.01)
    return ask_all("scan", {0: ()}, lambda _: replicas, feed, "1@0", usual, 1, set() if given_up is None else given_up)


def test_the_first_replica_answers_and_the_second_is_not_asked() -> None:
    first, second = replica(lambda: "first"), replica(lambda: "second")
    assert ask(first, second) == {0: "first"}
    assert second.handle.calls == 0


def test_a_slow_replica_is_overtaken_and_suspect() -> None:
    first, second = replica(lambda: "first", 3.0), replica(lambda: "second")
    begin = time.monotonic()
    assert ask(first, second) == {0: "second"}
    assert time.monotonic() - begin < 1.0
    assert first.suspect
    assert not second.suspect


def test_where_one_fails_the_next_is_asked() -> None:
    first, second = replica(lost), replica(lambda: "second")
    assert ask(first, second) == {0: "second"}
    assert first.failures == 1


def test_a_replica_without_the_version_is_fed_and_asked_again() -> None:
    states = iter([Absent(("0@0",)), "fed"])
    fed: list[Replica] = []
    only = replica(lambda: next(states))
    assert ask(only, fed=fed) == {0: "fed"}
    assert fed == [only]


def test_a_shard_that_nobody_answers_for_is_missing_and_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holue.cluster.asking.DEADLINE", 0.3)
    given_up: set[int] = set()
    first, second = replica(lost), replica(lost)
    assert ask(first, second, given_up=given_up) == {}
    assert given_up == {0}
    begin = time.monotonic()
    assert ask(first, second, given_up=given_up) == {}
    assert time.monotonic() - begin < 0.1
    second.answered(("1@0",))
    second.handle.answer = lambda: "back"
    assert ask(first, second, given_up=given_up) == {0: "back"}
    assert given_up == set()


def test_an_error_of_the_question_itself_is_raised() -> None:
    def wrong() -> Any:
        raise InvalidEmbeddingsError("3 features")

    only = replica(wrong)
    with pytest.raises(InvalidEmbeddingsError, match="3 features"):
        ask(only)
    assert not only.suspect


def test_the_first_question_of_its_kind_may_take_longer_but_not_where_nobody_works_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holue.cluster.asking.DEADLINE", 0.2)
    assert ask(replica(lambda: "compiled", 0.6), asked_before=False) == {0: "compiled"}
    assert ask(replica(lambda: "hangs", 0.6)) == {}
    begin = time.monotonic()
    assert ask(replica(lost), asked_before=False) == {}
    assert time.monotonic() - begin < 1.0


def test_hundreds_of_shards_cost_the_process_that_asks_little_each() -> None:
    class Immediate(Handle):
        def future(self) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(whole("here"))
            return future

    shards = {n: Replica(n, "n", Immediate(lambda: None), known=("1@0",)) for n in range(800)}
    usual = UsualTime()
    usual.note(1, 10.0)

    def seconds(some: int) -> float:
        begin = time.process_time()
        found = ask_all(
            "scan", dict.fromkeys(range(some), ()), lambda n: [shards[n]], lambda _: Future(), "1@0", usual, 1, set()
        )
        assert len(found) == some
        return time.process_time() - begin

    seconds(800)
    # Eight times the shards take eight times the time; looking at all shards for every answer would take sixty-four times.
    assert min(seconds(800) for _ in range(5)) < 24 * min(seconds(100) for _ in range(5))
