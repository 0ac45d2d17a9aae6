"""Many callers, one search: each version of a gallery is prepared once, answers are of one version, and a fork goes on."""

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from holue import UNKNOWN, OpenSetRecognizer
from holue.evidence.ivf.index import SMALLEST_GALLERY, ApproximateIndex
from holue.gallery.compressed import CompressedGallery
from holue.recognition.search import SEARCHES, Search

CALLERS = 40
SUBJECTS, DIM = SMALLEST_GALLERY + 500, 8
X = np.random.default_rng(0).normal(size=(SUBJECTS + 200, DIM)).astype(np.float32)
PREPARED = {
    "exact": type(None),
    "float16": CompressedGallery,
    "int8": CompressedGallery,
    "approximate": ApproximateIndex,
}

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture(scope="module")
def fitted() -> OpenSetRecognizer:
    return OpenSetRecognizer("galue", threshold=0.9, threads=1).fit(X[:SUBJECTS], np.arange(SUBJECTS))


@pytest.fixture
def enrolled(fitted: OpenSetRecognizer) -> OpenSetRecognizer:
    return deepcopy(fitted)


class Preparations:
    """Every preparation, of which version, and how many ran at once at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: Callable[[], object] = lambda: None) -> None:
        self.made: list[Search] = []
        self.running, self.most, self.lock = 0, 0, threading.Lock()
        prepare = Search.prepare
        waiting = [first]

        def counted(*given: Any) -> Search:
            with self.lock:
                self.running += 1
                self.most = max(self.most, self.running)
                act = waiting.pop() if waiting else None
            try:
                if act is not None:
                    act()
                search = prepare(*given)
                self.made.append(search)
                return search
            finally:
                with self.lock:
                    self.running -= 1

        monkeypatch.setattr(Search, "prepare", counted)


def at_once(work: Callable[[int], Any], callers: int = CALLERS) -> list[Any]:
    barrier = threading.Barrier(callers)

    def wait_and_work(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(wait_and_work, range(callers)))


@pytest.mark.parametrize("kind", ["float16", "int8", "approximate"])
def test_after_a_removal_many_callers_prepare_one_search(
    kind: str, enrolled: OpenSetRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrolled.set_params(search=kind).predict(X[:1])
    enrolled.remove(0)
    preparations = Preparations(monkeypatch)
    answers = at_once(lambda number: enrolled.predict(X[number + 1 : number + 2])[0])
    assert answers == list(range(1, CALLERS + 1))
    assert len(preparations.made) == 1
    assert isinstance(preparations.made[0].prepared, PREPARED[kind])


def test_versions_are_prepared_one_after_the_other(
    enrolled: OpenSetRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparations = Preparations(monkeypatch)
    enrolled.set_params(search="int8")

    def ask_or_change(number: int) -> None:
        if number % 8 == 0:
            enrolled.remove(5000 + number)
        enrolled.predict(X[:1])

    at_once(ask_or_change, 24)
    assert preparations.most == 1
    versions = [search.gallery.version for search in preparations.made]
    assert len(set(versions)) == len(versions)


def test_where_the_one_that_prepares_is_interrupted_another_takes_over(
    enrolled: OpenSetRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    preparations = Preparations(monkeypatch, interrupt)
    enrolled.set_params(search="int8")
    interrupted = []

    def ask(number: int) -> Any:
        try:
            return enrolled.predict(X[number : number + 1])[0]
        except KeyboardInterrupt:
            interrupted.append(number)
            return number

    assert at_once(ask, 8) == list(range(8))
    assert len(interrupted) == 1
    assert len(preparations.made) == 1


def test_a_failure_to_prepare_is_told_to_all_and_tried_again_later(
    enrolled: OpenSetRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise MemoryError("no room")

    Preparations(monkeypatch, fail)
    enrolled.set_params(search="int8")
    with pytest.raises(MemoryError, match="no room"):
        enrolled.predict(X[:1])
    assert enrolled.predict(X[:1])[0] == 0


@pytest.mark.parametrize("kind", SEARCHES)
def test_every_search_answers_from_one_version_while_others_enrol_and_remove(
    kind: str, enrolled: OpenSetRecognizer
) -> None:
    enrolled.set_params(search=kind).predict(X[:1])
    coming, going = np.arange(SUBJECTS, SUBJECTS + 6), np.arange(9000, 9006)
    asked = np.r_[:40, coming, going]
    stays = np.arange(len(asked)) < 40
    # Enrolled after they were asked about, or removed before: then a neighbour, or nobody. Never a third subject's name.
    alone = deepcopy(enrolled).remove(going).predict(X[asked])

    def ask_or_change(number: int) -> None:
        if number == 0:
            for one in coming:
                enrolled.enroll(X[one : one + 1], [one])
        elif number == 1:
            for one in going:
                enrolled.remove(one)
        else:
            for _ in range(3):
                answers = enrolled.identify(X[asked], top_k=2)
                assert (answers.subject[stays] == asked[stays]).all()
                moving = answers.subject[~stays]
                named = (moving == asked[~stays]) | (moving == alone[~stays]) | (moving == UNKNOWN)
                assert (named | np.isin(moving, coming)).all()

    at_once(ask_or_change, 6)
    assert len(enrolled.gallery_) == SUBJECTS
    assert (enrolled.predict(X[coming]) == coming).all()


def child(recognizer: OpenSetRecognizer, expected: list[int]) -> None:
    answers = recognizer.identify(X[: len(expected)]).subject.tolist()
    recognizer.remove(expected[-1])
    later = recognizer.predict(X[: len(expected) - 1]).tolist()
    os._exit(0 if answers == expected and later == expected[:-1] else 1)


def ends_well(process: Any) -> bool:
    process.join(120)
    if process.is_alive():
        process.kill()
        process.join()
        return False
    return bool(process.exitcode == 0)


fork = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")


@fork
@pytest.mark.parametrize("kind", SEARCHES)
def test_a_forked_child_answers_after_threads_were_used_in_the_parent(kind: str, enrolled: OpenSetRecognizer) -> None:
    enrolled.set_params(search=kind, threads=2)
    at_once(lambda number: enrolled.predict(X[number : number + 1]), 8)
    process = multiprocessing.get_context("fork").Process(target=child, args=(enrolled, list(range(20))))
    process.start()
    assert ends_well(process)


@fork
def test_a_child_forked_during_a_preparation_does_not_wait_for_it(
    enrolled: OpenSetRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        begun.set()
        go_on.wait(120)

    Preparations(monkeypatch, pause)
    enrolled.set_params(search="int8")
    asking = threading.Thread(target=enrolled.predict, args=(X[:1],))
    asking.start()
    begun.wait(120)
    process = multiprocessing.get_context("fork").Process(target=child, args=(enrolled, list(range(20))))
    process.start()
    try:
        assert ends_well(process)
    finally:
        go_on.set()
        asking.join()
