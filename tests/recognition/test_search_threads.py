"""Many callers, one search: each segment of a gallery is prepared once, answers are of one version, and a fork goes on."""

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
from holue.evidence.ivf.index import SMALLEST_GALLERY
from holue.gallery.segment import Segment
from holue.recognition.search import prepared_segments
from holue.recognition.search.search import SEARCHES

CALLERS = 40
SUBJECTS, DIM = SMALLEST_GALLERY + 500, 8
X = np.random.default_rng(0).normal(size=(SUBJECTS + 200, DIM)).astype(np.float32)
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture(scope="module")
def fitted() -> OpenSetRecognizer:
    return OpenSetRecognizer("galue", threshold=0.9, threads=1).fit(X[:SUBJECTS], np.arange(SUBJECTS))


@pytest.fixture
def enrolled(fitted: OpenSetRecognizer) -> OpenSetRecognizer:
    return deepcopy(fitted)


class Preparations:
    """Every segment that was prepared, and how many were at once at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, first: Callable[[], object] = lambda: None) -> None:
        self.made: list[Segment] = []
        self.running, self.most, self.lock = 0, 0, threading.Lock()
        prepare = prepared_segments.prepare_segment
        waiting = [first]

        def counted(kind: Any, segment: Segment) -> Any:
            with self.lock:
                self.running += 1
                self.most = max(self.most, self.running)
                act = waiting.pop() if waiting else None
            try:
                if act is not None:
                    act()
                form = prepare(kind, segment)
                self.made.append(segment)
                return form
            finally:
                with self.lock:
                    self.running -= 1

        monkeypatch.setattr(prepared_segments, "prepare_segment", counted)


def forms(recognizer: OpenSetRecognizer) -> tuple[Any, ...]:
    """The prepared form of each segment, as it is now."""
    return recognizer._cell.search(recognizer.search, recognizer.gallery_).prepared


def at_once(work: Callable[[int], Any], callers: int = CALLERS) -> list[Any]:
    barrier = threading.Barrier(callers)

    def wait_and_work(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(wait_and_work, range(callers)))


@pytest.mark.parametrize("kind", ["float16", "int8", "approximate"])
def test_many_callers_at_once_prepare_a_segment_once_and_a_removal_prepares_nothing(
    kind: str, enrolled: OpenSetRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparations = Preparations(monkeypatch)
    enrolled.set_params(search=kind)
    for _ in range(2):
        answers = at_once(lambda number: enrolled.predict(X[number + 1 : number + 2])[0])
        assert answers == list(range(1, CALLERS + 1))
        enrolled.remove(len(enrolled.gallery_) - 1)
    assert preparations.made == [enrolled.gallery_.parts[0].segment]


def test_a_large_batch_is_read_exactly_until_it_is_prepared_in_the_background(
    enrolled: OpenSetRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrolled.set_params(search="int8").predict(X[:1])
    begun, go_on = threading.Event(), threading.Event()

    def pause() -> None:
        begun.set()
        go_on.wait(120)

    preparations = Preparations(monkeypatch, pause)
    more = np.random.default_rng(1).normal(size=(5000, DIM)).astype(np.float32)
    enrolled.enroll(more, np.arange(10**6, 10**6 + 5000))
    try:
        assert enrolled.predict(more[7:8])[0] == 10**6 + 7
        assert begun.wait(120)
        assert enrolled.predict(more[8:9])[0] == 10**6 + 8, "nobody waits for it"
        assert forms(enrolled)[1] is None
        assert forms(enrolled)[0] is not None, "what is prepared is used meanwhile"
    finally:
        go_on.set()
    enrolled._cell.wait_for_preparation()
    assert enrolled.predict(more[9:10])[0] == 10**6 + 9
    assert forms(enrolled)[1] is not None
    assert len(preparations.made) == 1


def test_a_failure_in_the_background_is_tried_once_and_the_segment_is_read_exactly(
    enrolled: OpenSetRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    enrolled.set_params(search="int8").predict(X[:1])
    tried, reported = [], []

    def fail(kind: str, segment: Segment) -> None:
        tried.append(segment)
        raise MemoryError("no room")

    monkeypatch.setattr(prepared_segments, "prepare_segment", fail)
    monkeypatch.setattr(threading, "excepthook", lambda failure: reported.append(failure.exc_type))
    more = np.random.default_rng(1).normal(size=(5000, DIM)).astype(np.float32)
    enrolled.enroll(more, np.arange(10**6, 10**6 + 5000))
    for number in range(3):
        assert enrolled.predict(more[number : number + 1])[0] == 10**6 + number
        enrolled._cell.wait_for_preparation()
    assert len(tried) == 1
    assert reported == [MemoryError]


@pytest.mark.parametrize("kind", SEARCHES)
def test_what_many_have_left_is_merged_in_the_background_and_no_answer_changes(
    kind: str, enrolled: OpenSetRecognizer
) -> None:
    enrolled.set_params(search=kind).predict(X[:1])
    first = enrolled.gallery_.parts[0].segment
    enrolled.remove(np.arange(400))
    enrolled._cell.wait_for_preparation()
    left = np.arange(400, 440)
    before = enrolled.identify(X[left], top_k=2)
    going = int(left[0])
    enrolled.remove(np.arange(440, 1500)).remove(going)
    after = enrolled.identify(X[left[1:]], top_k=2)
    enrolled._cell.wait_for_preparation()
    assert enrolled.gallery_.parts[0].segment is not first
    assert len(enrolled.gallery_.parts[0].segment) <= SUBJECTS - 1460
    assert len(enrolled.gallery_) == SUBJECTS - 1461
    again = enrolled.identify(X[left[1:]], top_k=2)
    assert enrolled.gallery_.index_of(np.array([going]))[0] == -1
    for answers in (before[1:], again):
        np.testing.assert_array_equal(answers.subject, after.subject)
        np.testing.assert_array_equal(answers.score, after.score)


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
