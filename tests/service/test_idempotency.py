from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from holue.errors import ConflictError, InvalidParameterError
from holue.service.ledger.database import Database
from holue.service.ledger.idempotency import Idempotency, Response, empty_responses

DONE = Response(201, "application/json", b'{"version": 3}')


def test_a_repeated_request_gets_the_same_answer_in_every_process(open_ledger: Callable[[], Database]) -> None:
    kept = Idempotency(open_ledger())
    assert kept.begin("aa", "k", digest="d") is None
    kept.finish("aa", "k", DONE)
    assert Idempotency(open_ledger()).begin("aa", "k", digest="d") == DONE
    assert kept.begin("bb", "k", digest="other") is None  # another key holder's own


def test_the_same_key_for_another_request_is_refused(database: Database) -> None:
    kept = Idempotency(database)
    kept.begin("aa", "k", digest="d")
    kept.finish("aa", "k", DONE)
    with pytest.raises(ConflictError, match="another request"):
        kept.begin("aa", "k", digest="e")


def test_of_several_at_once_one_is_carried_out(database: Database) -> None:
    kept = Idempotency(database)
    results: list[str] = []

    def send() -> None:
        try:
            results.append("carried out" if kept.begin("aa", "k", digest="d") is None else "answered")
        except ConflictError as error:
            results.append("running" if "still running" in str(error) else str(error))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["carried out"] + ["running"] * 7


def test_a_request_whose_process_died_may_be_sent_again_after_a_while(database: Database) -> None:
    kept = Idempotency(database, running=60.0)
    assert kept.begin("aa", "k", digest="d", now=0.0) is None
    with pytest.raises(ConflictError, match="still running"):
        kept.begin("aa", "k", digest="d", now=59.0)
    assert kept.begin("aa", "k", digest="d", now=60.0) is None


def test_an_answer_is_kept_for_its_time_only(database: Database) -> None:
    kept = Idempotency(database, keep=100.0)
    kept.begin("aa", "k", digest="d", now=0.0)
    kept.finish("aa", "k", DONE, now=0.0)
    assert kept.begin("aa", "k", digest="d", now=99.0) == DONE
    assert kept.begin("aa", "k", digest="other", now=100.0) is None


def test_a_failed_request_may_be_sent_again_at_once(database: Database) -> None:
    kept = Idempotency(database)
    kept.begin("aa", "k", digest="d")
    kept.forget("aa", "k")
    assert kept.begin("aa", "k", digest="e") is None


def test_after_an_erasure_the_request_is_known_and_its_answer_is_not(database: Database) -> None:
    kept = Idempotency(database)
    kept.begin("aa", "k", digest="d")
    kept.finish("aa", "k", DONE)
    database.writing(empty_responses)
    assert kept.begin("aa", "k", digest="d") == Response(201, "application/json", None)


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_a_key_has_a_length(file_database: Database, key: str) -> None:
    with pytest.raises(InvalidParameterError, match="Idempotency-Key"):
        Idempotency(file_database).begin("aa", key, digest="d")
