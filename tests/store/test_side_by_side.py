"""What writers side by side rely on, over all homes: compare-and-swap of artifacts, references of changes, counts of samples."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from holue.errors import ConflictError
from holue.store.reference import CHANGE, made_for


def test_artifacts_are_swapped_together_or_not_at_all(home: Any) -> None:
    store = home.create(4)
    store.put_artifacts({"list": b"1", "one": b"first"}, replaces={"list": None})
    for expected in (None, b"0"):
        with pytest.raises(ConflictError, match="'list' was changed meanwhile"):
            store.put_artifacts({"list": b"2", "one": b"lost"}, replaces={"list": expected})
    store.put_artifacts({"list": b"2", "two": b"second"}, replaces={"list": b"1"}, by="ops")
    store = home.reopen(store)
    assert [store.artifact(name) for name in ("list", "one", "two")] == [b"2", b"first", b"second"]


def test_of_many_threads_that_swap_from_the_same_state_one_wins(home: Any) -> None:
    store = home.create(4)
    won: list[int] = []

    def swap(number: int) -> None:
        try:
            store.put_artifacts({"list": str(number).encode()}, replaces={"list": None})
            won.append(number)
        except ConflictError:
            pass

    threads = [threading.Thread(target=swap, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(number).encode() for number in won] == [store.artifact("list")]


def test_a_change_carries_the_reference_it_was_made_for(home: Any) -> None:
    store = home.create(4)
    store.enroll(np.eye(4), ["ann", "bob", "cay", "dan"])
    with made_for("r1"):
        removed = store.remove(["ann"], by="desk")
        store.put_artifact("calibration", b"point")
        erased = store.erase(["bob"]).version
    store.undo(removed)
    store = home.reopen(store)
    told = [(one.verb, one.detail) for one in store.operations()]
    assert told[0] == (CHANGE, {"version": removed, "kind": "remove", "request": "r1"})
    assert told[1][1]["request"] == "r1"
    assert (CHANGE, {"version": erased, "kind": "erase", "request": "r1"}) in told
    assert [verb for verb, _ in told] == [CHANGE, "put_artifact", CHANGE, "erase"]
    assert [one.number for one in store.operations(1, 2)] == [2, 3]


def test_threads_that_share_a_commit_keep_their_own_references(home: Any) -> None:
    store = home.create(4)
    expected: dict[int, str] = {}

    def enroll(number: int) -> None:
        with made_for(f"r{number}"):
            expected[store.enroll(np.eye(4)[:1] + number, [f"p{number}"]).version] = f"r{number}"

    threads = [threading.Thread(target=enroll, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.detail["version"]: one.detail["request"] for one in store.operations()} == expected


def test_samples_are_counted_without_reading_them(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = home.create(4)
    store.enroll(np.ones((6, 4)), ["ann", "bob", "bob", "cay", "cay", "cay"])
    store.remove(["ann"])
    monkeypatch.setattr(store, "samples", lambda *_: pytest.fail("samples were read"))
    assert store.sample_counts([3, 2, 1, 99]) == [3, 2, 0, 0]
    assert store.sample_counts([]) == []
