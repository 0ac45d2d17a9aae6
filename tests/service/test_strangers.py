from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from holue.errors import InvalidParameterError, NotFoundError
from holue.service.ledger.database import Database
from holue.service.ledger.strangers import Strangers

THRESHOLD = 0.6


def people(seed: int, n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((6, 5))
    return (centres[rng.integers(0, 6, n)] + 0.5 * rng.standard_normal((n, 5))).astype(np.float32)


def components(vectors: np.ndarray, numbers: list[int]) -> set[tuple[int, ...]]:
    """The slow and obvious way: all cosines, then the connected components."""
    wide = vectors.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    _, label = connected_components(wide @ wide.T >= THRESHOLD)
    return {tuple(number for number, own in zip(numbers, label) if own == one) for one in set(label.tolist())}


@given(st.integers(0, 10_000), st.lists(st.integers(1, 12), min_size=1, max_size=6), st.booleans())
@settings(max_examples=15, deadline=None)
def test_groups_are_the_connected_components_however_they_came(seed: int, steps: list[int], looks: bool) -> None:
    with Database.of_gallery(":memory:") as database:
        strangers = Strangers(database, keep=1000.0)
        vectors = people(seed, sum(steps))
        numbers: list[int] = []
        for step, size in enumerate(steps):
            part = vectors[len(numbers) : len(numbers) + size]
            numbers += strangers.add(part, request_id="r", model="m", now=float(step))
            if looks:
                strangers.groups(THRESHOLD, model="m", now=float(step))
        assert {group.members for group in strangers.groups(THRESHOLD, model="m", now=10.0)} == components(
            vectors, numbers
        )
        gone = numbers[::3]
        strangers.remove(gone)
        rest = [place for place in range(len(numbers)) if place % 3]
        left = {group.members for group in strangers.groups(THRESHOLD, model="m", now=10.0)}
        assert left == (components(vectors[rest], [numbers[place] for place in rest]) if rest else set())


def test_nobody_is_kept_unless_a_time_is_given(database: Database) -> None:
    assert Strangers(database).add(people(1), request_id="r", model=None) == []
    assert Strangers(database).groups(0.5, model=None) == []
    for keep in (0, -1, float("inf")):
        with pytest.raises(InvalidParameterError, match="keep"):
            Strangers(database, keep=keep)


def test_strangers_go_when_their_time_has_come(open_ledger: Callable[[], Database]) -> None:
    strangers = Strangers(open_ledger(), keep=100.0)
    first = strangers.add(people(1, 2), request_id="r1", model=None, now=0.0)
    second = strangers.add(people(1, 2), request_id="r2", model=None, now=50.0)
    groups = strangers.groups(0.999, model=None, now=99.0)
    assert {number for group in groups for number in group.members} == {*first, *second}
    other = Strangers(open_ledger(), keep=100.0)
    other.groups(0.999, model=None, now=99.0)
    later = other.groups(0.999, model=None, now=100.0)  # before anybody has purged them
    assert {number for group in later for number in group.members} == set(second)
    assert strangers.purge(now=100.0) == 2
    with pytest.raises(NotFoundError, match="no longer kept"):
        strangers.read(first)
    np.testing.assert_array_equal(strangers.read(second).embeddings, people(1, 2))


def test_strangers_of_another_model_are_not_compared(database: Database) -> None:
    strangers = Strangers(database, keep=100.0)
    one = strangers.add([[1.0, 0.0]], [90.0], request_id="r", model="a")
    strangers.add([[1.0, 0.0]], request_id="r", model="b")
    assert [group.members for group in strangers.groups(0.5, model="a")] == [tuple(one)]
    assert strangers.read(one).concentration == pytest.approx([90.0])


def test_only_so_many_are_kept_and_numbers_are_not_used_again(database: Database) -> None:
    strangers = Strangers(database, keep=100.0, most=5)
    for _ in range(3):
        strangers.add(people(1, 3), request_id="r", model=None)
    kept = {number for group in strangers.groups(0.5, model=None) for number in group.members}
    assert kept == {5, 6, 7, 8, 9}
    strangers.remove(kept)
    assert strangers.add(people(1, 1), request_id="r", model=None) == [10]


def test_the_bytes_of_those_who_went_are_in_no_file(file_database: Database) -> None:
    strangers = Strangers(file_database, keep=100.0)
    vectors = people(3, 50)
    strangers.add(vectors, request_id="r", model=None, now=0.0)
    assert file_database.file is not None
    held = [path for path in file_database.file.parent.iterdir() if vectors[7].tobytes() in path.read_bytes()]
    assert held
    assert strangers.purge(now=1000.0) == 50
    for path in file_database.file.parent.iterdir():
        data = path.read_bytes()
        assert not any(vector.tobytes() in data for vector in vectors), path.name
