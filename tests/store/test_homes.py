"""Every home keeps the same promises: one table of tests, over all homes."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from holue.errors import (
    InvalidEmbeddingsError,
    InvalidInputError,
    InvalidParameterError,
    InvalidSubjectsError,
    StoreError,
)

DIM = 48


def embeddings(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)


def contents(store: Any, version: int | None = None) -> dict[Any, list[bytes]]:
    """Ids and the bytes of their rows, as a view gives them."""
    view = store.at(version)
    found: dict[Any, list[bytes]] = {}
    for _, number, row in zip(*view.everything()):
        found.setdefault(view.get(int(number)).id, []).append(row.tobytes())
    return found


def test_a_sample_is_kept_as_given(home: Any) -> None:
    store = home.create(DIM, "model-1")
    X = 3 * embeddings(2)
    store.enroll(
        X,
        ["ann", "ann"],
        medium=["face", "voice"],
        concentration=[7.5, 20],
        time=[10.5, 11],
        origin=["a.png", None],
        by="desk",
    )
    store = home.reopen(store)
    one, two = store.samples("ann")
    assert one.embedding.tobytes() == X[0].tobytes()
    assert (one.medium, one.concentration, one.time, one.origin, one.enrolled_by) == (
        "face",
        7.5,
        10.5,
        "a.png",
        "desk",
    )
    assert (two.medium, two.concentration, two.time, two.origin) == ("voice", 20.0, 11.0, None)
    assert (one.number, two.number, one.subject) == (1, 2, 1)


def test_samples_of_several_subjects_are_read_at_once_as_one_by_one(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(7), ["ann", "bob", "ann", "cay", "bob", "ann", "dee"])
    store.add_samples(embeddings(2, 1), ["cay", "ann"])
    store.remove(["dee"])
    store = home.reopen(store)
    found = store.embeddings(["cay", "nobody", "ann", "dee", "bob"])
    assert set(found) == {"ann", "bob", "cay"}
    for subject, (numbers, rows) in found.items():
        samples = store.samples(subject)
        assert numbers.tolist() == [sample.number for sample in samples]
        assert rows.tobytes() == b"".join(sample.embedding.tobytes() for sample in samples)
    assert store.embeddings([]) == {}
    asked = store.sample_numbers(["cay", "nobody", "ann", "dee", "bob"])
    assert asked == {subject: numbers.tolist() for subject, (numbers, _) in found.items()}
    assert store.sample_numbers([]) == {}


def test_a_subject_keeps_what_was_said_about_it(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(
        embeddings(2),
        ["ann", "bob"],
        metadata={"ann": {"room": 4}},
        retain_until={"bob": 99},
        consent="form 3",
        purpose="door",
    )
    store = home.reopen(store)
    ann, bob = store.subjects()
    assert (ann.number, ann.id, ann.metadata, ann.retain_until, ann.consent, ann.purpose) == (
        1,
        "ann",
        {"room": 4},
        None,
        "form 3",
        "door",
    )
    assert (bob.metadata, bob.retain_until) == ({}, 99.0)


def test_numbers_ascend_and_are_never_used_again(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(3), [1, 2, 3])
    store.remove([3])
    store.erase([2])
    store = home.reopen(store)
    again = store.enroll(embeddings(2, 1), [2, 3])
    assert again.subjects.tolist() == [4, 5]
    assert again.samples.tolist() == [4, 5]


def test_every_version_can_be_read_as_it_was(home: Any) -> None:
    store = home.create(DIM)
    X = embeddings(6)
    seen = {0: contents(store)}

    def note(version: int) -> None:
        assert version == store.version
        seen[version] = contents(store)

    note(store.enroll(X[:3], ["a", "b", "c"]).version)
    note(store.add_samples(X[3:5], ["a", "b"]).version)
    note(store.rename("a", "z"))
    note(store.merge(["b"], into="c"))
    note(store.split("c", [2], new="b"))
    note(store.replace(X[5:], ["z"]).version)
    note(store.remove(["c"]))
    note(store.undo())
    assert seen[8] == seen[6]
    store = home.reopen(store)
    store.compact()
    for version, expected in seen.items():
        assert contents(store, version) == expected, version
    assert store.at(2).find("a").number == 1
    assert store.at(3).find("a") is None


def test_each_change_can_be_undone(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(4), ["a", "b", "c", "c"], metadata={"a": {"x": 1}})
    before = contents(store)
    for change in (
        lambda: store.remove(["a", "c"]),
        lambda: store.rename("a", "new"),
        lambda: store.merge(["a", "b"], into="c"),
        lambda: store.split("c", [4], new="d"),
        lambda: store.enroll(embeddings(1, 5), ["e"]),
        lambda: store.add_samples(embeddings(1, 5), ["a"]),
        lambda: store.replace(embeddings(1, 5), ["a"]),
        lambda: store.remove_samples([3]),
    ):
        change()
        changed = contents(store)
        assert changed != before
        store.undo()
        assert contents(store) == before
        store.undo()
        assert contents(store) == changed
        store.undo()
    assert store.subject("a").metadata == {"x": 1}


def test_an_undo_that_would_disturb_later_changes_is_refused(home: Any) -> None:
    store = home.create(DIM)
    first = store.enroll(embeddings(2), ["a", "b"]).version
    removed = store.remove(["b"])
    renamed = store.rename("a", "b")
    before = contents(store)
    with pytest.raises(InvalidParameterError, match=f"version {renamed}"):
        store.undo(first)
    with pytest.raises(InvalidSubjectsError, match="taken by another subject"):
        store.undo(removed)
    with pytest.raises(InvalidParameterError, match="not kept"):
        store.undo(99)
    assert contents(store) == before
    assert store.version == renamed


def test_a_change_can_be_undone_once_later_changes_of_the_same_subject_are_undone(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(3), ["a", "a", "b"])
    before = contents(store)
    first = store.rename("a", "x")
    second = store.add_samples(embeddings(1, 5), ["x"]).version
    third = store.merge(["x"], into="b")
    with pytest.raises(InvalidParameterError, match=f"version {third} changed the same"):
        store.undo(first)
    store.undo(third)
    store = home.reopen(store)
    store.undo(second)
    store.undo(first)
    assert contents(store) == before
    with pytest.raises(InvalidParameterError, match=f"version {first} was undone by version {store.version}"):
        store.undo(first)
    store.undo()
    assert store.subject("x") is not None
    again = store.rename("x", "y")
    with pytest.raises(InvalidParameterError, match=f"version {again} changed the same"):
        store.undo(first)
    store.undo(again)
    store.undo(first)
    assert contents(store) == before


def test_an_undo_of_what_came_before_a_change_still_stands_in_its_way(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(2), ["a", "b"])
    first = store.rename("a", "x")
    second = store.rename("x", "y")
    back = store.undo(second)
    further_back = store.undo(first)
    with pytest.raises(InvalidParameterError, match=f"version {further_back} changed the same"):
        store.undo(back)
    assert store.subject("a") is not None


def test_an_undo_leaves_no_subject_without_samples_and_no_sample_without_subject(home: Any) -> None:
    store = home.create(DIM)
    enrolled = store.enroll(embeddings(3), ["a", "a", "b"]).version
    taken = store.remove_samples([1])
    store.merge(["a"], into="b")
    with pytest.raises(InvalidParameterError, match="has left since"):
        store.undo(taken)
    store.undo()
    store.add_samples(embeddings(1, 3), ["b"])
    with pytest.raises(InvalidParameterError, match="cannot be undone"):
        store.undo(enrolled)


def test_the_change_log_rebuilds_every_version(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(4), ["a", "b", "c", "d"])
    store.merge(["a"], into="b")
    store.add_samples(embeddings(2, 2), ["c", "d"])
    store.remove(["c"])
    store.undo()
    store.split("b", [1], new="a2")
    owners: dict[int, int] = {}
    for change in store.changes(0):
        for sample, owner in zip(change.samples.tolist(), change.moved_to.tolist()):
            owners[sample] = owner
        samples, subjects, _ = store.at(change.version).everything()
        assert {s: o for s, o in owners.items() if o >= 0} == dict(zip(samples.tolist(), subjects.tolist()))
    assert [change.kind for change in store.changes(2)] == ["add_samples", "remove", "undo", "split"]
    assert store.changes(4)[0].undoes == 4


@pytest.mark.parametrize(
    ("X", "ids", "row", "why"),
    [
        ([[1.0] * DIM, [np.nan] * DIM], ["a", "b"], 1, "NaN"),
        ([[1.0] * DIM, [0.0] * DIM], ["a", "b"], 1, "zero"),
        ([[1.0] * DIM, [1e300] * DIM], ["a", "b"], 1, "infinity"),
        ([[1.0] * DIM, [1.0] * 3], ["a", "b"], 1, "shape"),
        ([[1.0] * DIM, [1.0] * DIM], ["a", "old"], 1, "enrolled already"),
        ([[1.0] * DIM, [1.0] * DIM], ["a", 5], 1, "integers"),
        ([[1.0] * DIM, [1.0] * DIM], ["a", ""], 1, "empty"),
        ([[1.0] * DIM, [1.0] * DIM], ["a", "x\0y"], 1, "NUL"),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_enrolled(home: Any, X: Any, ids: Any, row: int, why: str) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(1), ["old"])
    with pytest.raises(InvalidInputError, match=f"row {row}.*{why}"):
        store.enroll(X, ids)
    assert store.version == 1
    assert store.subject("a") is None
    taken = store.enroll(X, ids, skip_bad=True)
    assert [entry.row for entry in taken.left_out] == [row]
    assert why in taken.left_out[0].why
    assert taken.subjects.tolist() == [2]
    assert store.subject("a").number == 2


def test_another_dimension_or_model_is_refused(home: Any) -> None:
    store = home.create(DIM, "model-1")
    with pytest.raises(InvalidEmbeddingsError, match="48"):
        store.enroll(np.ones((2, DIM + 1)), ["a", "b"])
    with pytest.raises(InvalidEmbeddingsError, match="model-2"):
        store.enroll(embeddings(1), ["a"], model="model-2")
    with pytest.raises(InvalidInputError, match="row 1 concentration"):
        store.enroll(embeddings(2), ["a", "b"], concentration=[1, -1])
    assert store.version == 0


def test_verbs_name_who_is_not_enrolled(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(2), ["a", "b"])
    for refused in (
        lambda: store.remove(["a", "nobody"]),
        lambda: store.rename("nobody", "x"),
        lambda: store.merge(["nobody"], into="a"),
        lambda: store.split("nobody", [1], new="x"),
        lambda: store.add_samples(embeddings(1), ["nobody"]),
        lambda: store.replace(embeddings(1), ["nobody"]),
        lambda: store.erase(["nobody"]),
    ):
        with pytest.raises(InvalidSubjectsError, match="nobody"):
            refused()
    with pytest.raises(InvalidSubjectsError, match="enrolled already"):
        store.rename("a", "b")
    with pytest.raises(InvalidParameterError, match="without a sample"):
        store.split("a", [1], new="x")
    with pytest.raises(InvalidParameterError, match="without a sample"):
        store.remove_samples([1])
    assert store.version == 1


def test_nothing_brings_an_erased_subject_back(home: Any) -> None:
    store = home.create(DIM)
    enrolled = store.enroll(embeddings(4), ["ann", "ann", "bob", "cay"]).version
    store.rename("ann", "anna")
    snapshot = store.snapshot("before")
    merged = store.merge(["cay"], into="anna")
    removed = store.remove(["anna"])
    receipt = store.erase(["anna"])
    assert receipt.clean
    assert receipt.samples == 3
    store = home.reopen(store)
    for version in range(enrolled, store.version + 1):
        assert set(contents(store, version)) == {"bob"}
        assert store.at(version).find("ann") is None
    for version in (merged, removed):
        with pytest.raises(InvalidParameterError, match="erased"):
            store.undo(version)
    with pytest.raises(InvalidSubjectsError):
        store.erase(["anna"])
    restored = home.restore(store, snapshot)
    assert set(contents(restored)) == {"bob"}
    assert [subject.id for subject in restored.subjects()] == ["bob"]
    assert store.receipts() == [receipt]


def test_a_sample_that_moved_to_somebody_else_is_not_erased_with_its_first_subject(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(3), ["ann", "ann", "bob"])
    snapshot = store.snapshot()
    split = store.split("ann", [2], new="eve")
    store.erase(["ann"])
    assert set(contents(store)) == {"bob", "eve"}
    assert set(contents(store, split - 1)) == {"bob"}
    with pytest.raises(InvalidParameterError, match="has left"):
        store.undo(split)
    assert set(contents(store)) == {"bob", "eve"}
    restored = home.restore(store, snapshot)
    assert contents(restored) == {"bob": contents(store)["bob"]}


def test_purge_erases_what_has_expired(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(4), ["a", "b", "c", "d"], retain_until={"a": 100, "b": 200, "d": 50})
    store.remove(["d"])
    assert store.purge(now=150, dry_run=True) == ([1, 4], None)
    assert store.subject("a") is not None
    expired, receipt = store.purge(now=150)
    assert expired == [1, 4]
    assert receipt.clean
    assert [subject.id for subject in store.subjects()] == ["b", "c"]
    assert store.purge(now=150) == ([], None)
    with pytest.raises(InvalidParameterError):
        store.undo(2)


def test_a_snapshot_restores_what_was_there(home: Any) -> None:
    store = home.create(DIM, "model-1")
    store.enroll(embeddings(3), ["a", "b", "c"])
    store.put_artifact("calibration", b"\0point")
    expected = contents(store)
    snapshot = store.snapshot("monday")
    store.remove(["a"])
    restored = home.restore(store, snapshot)
    assert contents(restored) == expected
    assert restored.artifact("calibration") == b"\0point"
    assert (restored.dim, restored.model) == (DIM, "model-1")
    assert restored.verify() == []
    assert store.status().snapshots == ("monday",)
    with pytest.raises(StoreError, match="exists already"):
        store.snapshot("monday")


def test_compaction_changes_no_answer_and_forgets_on_request(home: Any) -> None:
    store = home.create(DIM)
    for seed in range(6):
        store.enroll(embeddings(2, seed), [f"{seed}a", f"{seed}b"])
    store.remove(["1a", "2b"])
    version = store.merge(["3a"], into="3b")
    expected = contents(store)
    store.compact(forget_before=version)
    store = home.reopen(store)
    assert contents(store) == expected
    assert store.status().oldest_version == version
    with pytest.raises(InvalidParameterError, match="not kept"):
        store.at(version - 1)
    with pytest.raises(InvalidParameterError, match="no longer kept"):
        store.undo(version)
    later = store.remove(["0a"])
    store.undo(later)
    assert contents(store) == expected
    assert store.verify() == []


def test_artifacts_and_operations_are_kept(home: Any) -> None:
    store = home.create(DIM)
    assert store.artifact("calibration") is None
    store.put_artifact("calibration", b"one")
    store.put_artifact("calibration", b"two", by="ops")
    store = home.reopen(store)
    assert store.artifact("calibration") == b"two"
    assert store.status().artifacts == ("calibration",)
    assert [(entry.verb, entry.by) for entry in store.operations()] == [("put_artifact", None), ("put_artifact", "ops")]
    assert store.operations(after=1)[0].number == 2


def test_callers_in_threads_are_all_kept(home: Any) -> None:
    store = home.create(DIM)
    X = embeddings(80)
    refused = []

    def enrol(caller: int) -> None:
        for i in range(10):
            store.enroll(X[caller * 10 + i : caller * 10 + i + 1], [caller * 10 + i])
            try:
                store.enroll(X[:1], [caller * 10 + i])
            except InvalidSubjectsError:
                refused.append(i)

    threads = [threading.Thread(target=enrol, args=(caller,)) for caller in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = home.reopen(store)
    assert contents(store) == {i: [X[i].tobytes()] for i in range(80)}
    assert len(refused) == 80
    assert store.version == 80


def test_a_view_gives_rows_in_the_order_asked_for(home: Any) -> None:
    store = home.create(DIM)
    X = embeddings(900)
    store.enroll(X[:800], list(range(800)))
    for i in range(800, 900, 20):
        store.enroll(X[i : i + 20], list(range(i, i + 20)))
    store.remove([5])
    store.merge([7], into=8)
    wanted = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(1, 901), [6]))
    assert store.at().rows(wanted).tobytes() == X[wanted - 1].tobytes()
    assert store.at(1).rows([6]).tobytes() == X[5].tobytes()
    for version, sample in ((None, 6), (1, 850), (None, 901)):
        with pytest.raises(InvalidParameterError, match=f"sample {sample}"):
            store.at(version).rows([1, sample])


def test_a_view_names_everybody_or_those_who_are_asked_for(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(3), ["a", "b", "c"])
    store.rename("a", "z")
    store.remove(["b"])
    assert store.at().names() == [(1, "z"), (3, "c")]
    assert store.at().names([3, 2, 9]) == [(3, "c")]
    assert store.at(1).names([2, 1]) == [(1, "a"), (2, "b")]
    assert store.at(1).names([]) == []


def test_an_erased_number_that_a_snapshot_never_gave_stays_free_in_it(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(1), ["a"])
    snapshot = store.snapshot()
    store.enroll(embeddings(1, 1), ["b"])
    store.erase(["b"])
    restored = home.restore(store, snapshot)
    enrolled = restored.enroll(embeddings(1, 2), ["c"])
    assert enrolled.subjects.tolist() == [2]
    restored.merge(["c"], into="a")
    assert set(contents(restored, enrolled.version)) == {"a", "c"}
    with pytest.raises(InvalidSubjectsError, match="number 99"):
        store.erase(numbers=[99])


def test_what_is_said_about_nobody_in_the_batch_is_refused(home: Any) -> None:
    store = home.create(DIM)
    with pytest.raises(InvalidSubjectsError, match=r"metadata.*'bob'"):
        store.enroll(embeddings(1), ["ann"], metadata={"bob": {}})
    with pytest.raises(InvalidParameterError, match="retain_until"):
        store.enroll(embeddings(1), ["ann"], retain_until=float("nan"))
    with pytest.raises(InvalidParameterError, match="metadata of 'ann' must be JSON"):
        store.enroll(embeddings(1), ["ann"], metadata={"ann": {"x": object()}})
    assert store.version == 0


def test_a_snapshot_loses_all_samples_of_whoever_was_merged_into_an_erased_subject(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(4), ["ann", "ann", "bob", "cay"])
    snapshot = store.snapshot()
    store.compact(forget_before=store.remove_samples([1]))
    store.merge(["ann"], into="bob")
    store.erase(["bob"])
    assert set(contents(home.restore(store, snapshot))) == {"cay"}


def test_what_is_said_about_a_subject_can_be_changed(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(2), ["ann", "bob"], metadata={"ann": {"room": 4}}, consent="form 3", retain_until=99)
    before = store.subjects()
    version = store.update(["ann", "bob"], retain_until=None, purpose="door", by="desk")
    store.update("ann", metadata={"room": 5})
    assert version == 2
    store = home.reopen(store)
    ann, bob = store.subjects()
    assert (ann.number, ann.metadata, ann.retain_until, ann.consent, ann.purpose) == (
        1,
        {"room": 5},
        None,
        "form 3",
        "door",
    )
    assert (bob.number, bob.metadata, bob.retain_until, bob.consent, bob.purpose) == (2, {}, None, "form 3", "door")
    assert store.at(1).find("ann") == before[0]
    change = store.changes(1)[0]
    assert (change.kind, change.by, change.subjects.tolist(), change.samples.tolist()) == ("update", "desk", [1, 2], [])
    assert store.purge(now=1000) == ([], None)
    store.undo()
    assert store.subject("ann").metadata == {"room": 4}
    assert store.verify() == []


def test_an_update_can_be_undone(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(2), ["ann", "bob"], metadata={"ann": {"room": 4}}, retain_until=99)
    before = store.subjects()
    store.update(["ann", "bob"], metadata={}, retain_until=None, consent="form 3", purpose="door")
    assert store.subjects() != before
    store.undo()
    assert store.subjects() == before


def test_a_change_of_what_is_said_is_checked(home: Any) -> None:
    store = home.create(DIM)
    store.enroll(embeddings(1), ["ann"])
    with pytest.raises(InvalidParameterError, match="metadata, retain_until, consent or purpose"):
        store.update(["ann"])
    with pytest.raises(InvalidSubjectsError, match="nobody"):
        store.update(["ann", "nobody"], purpose="door")
    with pytest.raises(InvalidParameterError, match="retain_until"):
        store.update(["ann"], retain_until=float("inf"))
    with pytest.raises(InvalidParameterError, match="metadata must be JSON"):
        store.update(["ann"], metadata={"x": object()})
    assert store.version == 1
