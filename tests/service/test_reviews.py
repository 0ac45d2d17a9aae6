from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holue.errors import ConflictError, InvalidParameterError, NotFoundError
from holue.gallery.subjects import UNKNOWN
from holue.service.ledger.database import Database
from holue.service.ledger.keys import Keys
from holue.service.ledger.reviewing.labelled_probes import LabelledProbes
from holue.service.ledger.reviewing.review_item import (
    Kind,
    ReviewCandidate,
    ReviewDecision,
    State,
    Verdict,
    settled,
    without_names,
)
from holue.service.ledger.reviewing.review_offer import Offer, embedding_digest, permanent_number
from holue.service.ledger.reviewing.reviews import Reviews, erase_subjects
from holue.service.roles import Role

ANN, BOB, CAY = "aa/reviewer", "bb/reviewer", "cc/reviewer"


def offer(number: int, decision: str = "filtered", best: float = 0.5, unknown: float = 0.4, **more: Any) -> Offer:
    subject = 1 if decision == "accepted" else None
    given: dict[str, Any] = {
        "request_id": f"request-{number}", "probe": 0, "embedding": np.random.default_rng(number).standard_normal(8),
        "concentration": None, "gallery_version": 3, "calibration": 2, "model": "arcface", "decision": decision,
        "subject": subject,
        "candidates": tuple(ReviewCandidate(n, 0.9 - n / 10, best / n) for n in (1, 2, 3)),
        "answer": {"p_subject": best, "p_unknown": unknown, "reason": "just above the threshold: 0.31 against 0.30"},
    }  # fmt: skip
    made = Offer(**{**given, **more})
    return replace(made, embedding=np.asarray(made.embedding, np.float32))


def test_filtered_answers_are_queued_and_others_only_by_share(database: Database) -> None:
    reviews = Reviews(database)
    numbers = reviews.offer([offer(1), offer(2, "accepted"), offer(3, "rejected")])
    assert [number is None for number in numbers] == [False, True, True]
    assert reviews.counts() == {"open": 1, "disputed": 0, "decided": 0}


def test_an_item_is_kept_with_its_probe_and_its_versions(open_ledger: Callable[[], Database]) -> None:
    given = offer(1, concentration=120.0)
    [number] = Reviews(open_ledger()).offer([given], now=50.0)
    assert number is not None
    item = Reviews(open_ledger()).get(number)
    np.testing.assert_array_equal(item.embedding, given.embedding)
    assert (item.created, item.request_id, item.gallery_version, item.calibration) == (50.0, "request-1", 3, 2)
    assert (item.concentration, item.candidates, item.state) == (120.0, given.candidates, State.OPEN)


def test_the_sampled_share_is_that_of_the_keyed_numbers(file_database: Database) -> None:
    reviews = Reviews(file_database, share=0.25)
    offers = [offer(number, "accepted") for number in range(400)]
    taken = [number is not None for number in reviews.offer(offers)]
    expected = [permanent_number(file_database.secret(), one.request_id, 0) < 0.25 for one in offers]
    assert taken == expected
    assert 60 <= sum(taken) <= 140  # 100 expected, ± 4.6 standard deviations


def test_permanent_numbers_are_uniform_and_differ_by_key() -> None:
    numbers = np.sort([permanent_number(b"k", f"r{i}", 0) for i in range(2000)])
    uniform = (np.arange(2000) + 0.5) / 2000
    assert np.abs(numbers - uniform).max() < 0.05  # Kolmogorov-Smirnov: under 1e-4 by chance
    assert permanent_number(b"k", "r1", 0) != permanent_number(b"l", "r1", 0) != permanent_number(b"l", "r1", 1)


def test_the_most_uncertain_item_comes_first_and_nobody_gets_it_meanwhile(database: Database) -> None:
    reviews = Reviews(database)
    clear, doubtful, middle = reviews.offer(
        [offer(1, best=0.98, unknown=0.01), offer(2, best=0.45, unknown=0.45), offer(3, best=0.8, unknown=0.1)]
    )
    first, second = reviews.claim(ANN, now=0.0), reviews.claim(BOB, now=0.0)
    assert first is not None
    assert second is not None
    assert (first.number, second.number) == (doubtful, middle)
    again = reviews.claim(ANN, now=1.0)
    assert again is not None
    assert again.number == doubtful
    third = reviews.claim(CAY, now=1.0)
    assert third is not None
    assert third.number == clear
    assert reviews.claim("dd/reviewer", now=1.0) is None
    with pytest.raises(ConflictError, match="another reviewer"):
        reviews.decide(doubtful or 0, BOB, Kind.REJECT, now=2.0)
    late = reviews.claim("dd/reviewer", now=302.0)  # the leases have ended
    assert late is not None
    assert late.number == doubtful


@pytest.mark.parametrize(
    ("kind", "subject", "shown"), [(Kind.ACCEPT, None, 1), (Kind.ACCEPT, 2, 2), (Kind.REJECT, None, None), (Kind.OTHER, 9, 9)]
)  # fmt: skip
def test_a_decision_labels_the_probe_and_undo_takes_the_label_back(
    database: Database, kind: Kind, subject: int | None, shown: int | None
) -> None:
    reviews, labelled = Reviews(database), LabelledProbes(database)
    given = offer(1)
    [number] = reviews.offer([given])
    assert number is not None
    item = reviews.decide(number, ANN, kind, subject, now=7.0)
    assert (item.state, item.verdict) == (State.DECIDED, Verdict(shown))
    probes = labelled.read(model="arcface")
    np.testing.assert_array_equal(probes.embeddings[0], given.embedding)
    assert (probes.subjects.tolist(), probes.time.tolist()) == ([shown or 0], [7.0])
    assert len(labelled.read(model="another")) == 0
    with pytest.raises(ConflictError, match="decided already"):
        reviews.decide(number, BOB, Kind.REJECT)
    undone = reviews.undo(number, ANN, now=8.0)
    assert (undone.state, undone.verdict, len(labelled)) == (State.OPEN, None, 0)
    assert undone.decisions[0].undone_by == ANN
    with pytest.raises(NotFoundError, match="no such decision"):
        reviews.undo(number, ANN)


def test_a_candidate_ruled_out_is_not_offered_again_for_that_probe(database: Database) -> None:
    reviews = Reviews(database)
    [number] = reviews.offer([offer(1)])
    assert number is not None
    item = reviews.decide(number, ANN, Kind.NOT_THIS)
    assert item.state is State.OPEN
    assert [candidate.subject for candidate in item.candidates] == [2, 3]
    with pytest.raises(ConflictError, match="ruled out"):
        reviews.decide(number, ANN, Kind.OTHER, 1)
    with pytest.raises(InvalidParameterError, match="no candidate"):
        reviews.decide(number, ANN, Kind.ACCEPT, 1)
    same = replace(offer(1), request_id="later")
    assert reviews.offer([same]) == [number]  # the same probe is not asked about twice
    assert [candidate.subject for candidate in reviews.decide(number, ANN, Kind.NOT_THIS, 3).candidates] == [2]
    reviews.undo(number, ANN)
    assert [candidate.subject for candidate in reviews.get(number).candidates] == [2, 3]
    assert reviews.decide(number, ANN, Kind.ACCEPT).verdict == Verdict(2)


def test_ruled_out_candidates_stay_out_of_sampled_items_about_the_same_probe(database: Database) -> None:
    reviews = Reviews(database, share=1.0)
    [number] = reviews.offer([offer(1)])
    reviews.decide(number or 0, ANN, Kind.NOT_THIS)
    [other] = reviews.offer([replace(offer(1, "accepted"), request_id="later")])
    assert other not in (None, number)
    assert [candidate.subject for candidate in reviews.get(other or 0).candidates] == [2, 3]


def test_what_was_skipped_comes_last_for_that_reviewer_only(database: Database) -> None:
    reviews = Reviews(database)
    doubtful, clear = reviews.offer([offer(1, best=0.45, unknown=0.45), offer(2, best=0.9, unknown=0.05)])
    reviews.decide(doubtful or 0, ANN, Kind.SKIP)
    mine, others = reviews.claim(ANN), reviews.claim(BOB)
    assert mine is not None
    assert others is not None
    assert (mine.number, others.number) == (clear, doubtful)


def test_two_people_must_agree_and_a_third_settles_a_dispute(database: Database) -> None:
    reviews, labelled = Reviews(database, people=2), LabelledProbes(database)
    [number] = reviews.offer([offer(1)])
    assert number is not None
    assert reviews.decide(number, ANN, Kind.ACCEPT).state is State.OPEN
    assert reviews.claim(ANN) is None  # the same key is not asked again
    with pytest.raises(ConflictError, match="has decided review"):
        reviews.decide(number, ANN, Kind.REJECT)
    assert len(labelled) == 0
    assert reviews.decide(number, BOB, Kind.REJECT).state is State.DISPUTED
    assert len(labelled) == 0
    third = reviews.claim(CAY)
    assert third is not None
    assert reviews.decide(number, CAY, Kind.ACCEPT).verdict == Verdict(1)
    assert len(labelled) == 1
    assert reviews.undo(number, "dd/admin", decision=1).state is State.DISPUTED


Votes = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from([None, 1, 2]), st.booleans()), max_size=6)


@given(Votes, st.integers(1, 2))
def test_an_item_is_decided_exactly_if_enough_different_people_agree(
    votes: list[tuple[str, int | None, bool]], people: int
) -> None:
    seen: set[str] = set()
    decisions = []
    for number, (who, subject, undone) in enumerate(votes):
        if who in seen:
            continue
        seen.add(who)
        kind = Kind.REJECT if subject is None else Kind.OTHER
        decisions.append(ReviewDecision(number, 0.0, who, kind, subject, 1.0 if undone else None))
    state, verdict = settled(decisions, people)
    standing = [one.subject for one in decisions if one.undone is None]
    most = max((standing.count(subject) for subject in standing), default=0)
    assert (state is State.DECIDED) == (most >= people)
    assert (verdict is not None) == (state is State.DECIDED)
    assert verdict is None or standing.count(verdict.subject) == most
    assert state is not State.DISPUTED or len(set(standing)) > 1


def test_a_fifth_of_the_work_goes_to_sampled_answers_in_the_order_of_their_numbers(database: Database) -> None:
    reviews = Reviews(database, share=1.0)
    filtered = {number for number in reviews.offer([offer(n) for n in range(20)]) if number}
    sampled = reviews.offer([offer(n, "accepted") for n in range(100, 120)])
    order = []
    for step in range(20):
        item = reviews.claim(ANN, now=float(step))
        assert item is not None
        order.append(item.number)
        reviews.decide(item.number, ANN, Kind.ACCEPT, now=float(step))
    looked_at = [number for number in order if number not in filtered]
    assert len(looked_at) == 4
    numbers = {n: permanent_number(database.secret(), f"request-{100 + i}", 0) for i, n in enumerate(sampled)}
    assert looked_at == sorted(numbers, key=lambda n: numbers[n])[:4]


def test_labels_name_subjects_who_are_still_enrolled(database: Database) -> None:
    reviews = Reviews(database)
    numbers = reviews.offer([offer(1), offer(2), offer(3)])
    for number, subject in zip(numbers, (1, 2, None)):
        reviews.decide(number or 0, ANN, Kind.REJECT if subject is None else Kind.ACCEPT, subject, now=number)
    known, ids = LabelledProbes(database).read(model="arcface").named({1: "ann"})
    assert known.tolist() == [True, False, True]
    assert ids.tolist() == ["ann", UNKNOWN]


def test_erasure_takes_everything_that_names_a_subject(database: Database) -> None:
    reviews = Reviews(database)
    best, decided, second, probe, untouched = reviews.offer([
        offer(1), offer(2, candidates=(ReviewCandidate(5, 0.5, 0.5),)),
        offer(3, candidates=(ReviewCandidate(5, 0.5, 0.5), ReviewCandidate(1, 0.4, 0.3))),
        offer(4, candidates=()), offer(5, candidates=(ReviewCandidate(6, 0.5, 0.5),)),
    ])  # fmt: skip
    reviews.decide(decided or 0, ANN, Kind.OTHER, 1)
    digest = embedding_digest(database.secret(), offer(4).embedding)
    assert database.writing(lambda connection: erase_subjects(connection, [1], [digest])) == 3
    assert [item.number for item in reviews.items()] == [second, untouched]
    assert [candidate.subject for candidate in reviews.get(second or 0).candidates] == [5]
    assert len(LabelledProbes(database)) == 0
    assert (best, probe) != (None, None)


def test_the_last_decision_of_a_reviewer_is_found_until_it_is_undone(database: Database) -> None:
    reviews = Reviews(database)
    first, second = (number for number in reviews.offer([offer(1), offer(2)]) if number is not None)
    assert reviews.last_of("ann") is None
    reviews.decide(first, "ann", Kind.REJECT)
    reviews.decide(second, "bob", Kind.REJECT)
    assert reviews.last_of("ann") == first
    reviews.undo(first, "ann")
    assert reviews.last_of("ann") is None
    assert reviews.last_of("bob") == second


def test_old_items_are_purged_with_their_labels(database: Database) -> None:
    reviews = Reviews(database)
    old, new = reviews.offer([offer(1)], now=10.0)[0], reviews.offer([offer(2)], now=20.0)[0]
    reviews.decide(old or 0, ANN, Kind.ACCEPT)
    assert reviews.purge(before=15.0) == 1
    assert [item.number for item in reviews.items()] == [new]
    assert len(LabelledProbes(database)) == 0
    with pytest.raises(NotFoundError):
        reviews.get(old or 0)


@pytest.mark.parametrize(
    ("reason", "plain"),
    [
        ("between ann and bob: 0.51 and 0.40", "between candidate 1 and candidate 2: 0.51 and 0.40"),
        ("between ann and zoe, as is usual here: 0.5", "between candidate 1 and candidate 2, as is usual here: 0.5"),
        ("between ann and several others: 0.5", "between candidate 1 and several others: 0.5"),
        ("ann stands out, though below the threshold: 0.3", "candidate 1 stands out, though below the threshold: 0.3"),
        ("just above the threshold: 0.31 against 0.30", "just above the threshold: 0.31 against 0.30"),
    ],
)  # fmt: skip
def test_no_name_is_kept_in_a_reason(reason: str, plain: str) -> None:
    assert without_names(reason, ["ann", "bob"]) == plain


@pytest.mark.parametrize(
    ("settings", "field"), [({"share": 1.5}, "share"), ({"share": -1}, "share"), ({"people": 3}, "people")]
)
def test_settings_out_of_range_are_named(file_database: Database, settings: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidParameterError, match=field):
        Reviews(file_database, **settings)


def test_the_risk_is_found_in_the_complete_part_of_the_sample(database: Database) -> None:
    reviews, labelled = Reviews(database, share=0.5), LabelledProbes(database)
    offers = [offer(n, "accepted" if n % 2 else "rejected") for n in range(60)]
    numbers = dict(
        zip(reviews.offer(offers), (permanent_number(database.secret(), one.request_id, 0) for one in offers))
    )
    sampled = sorted((number for number in numbers if number is not None), key=lambda number: numbers[number])
    skipped = sampled[10]
    wrong = 0
    for place, number in enumerate(sampled):
        if number == skipped:
            continue
        item = reviews.get(number)
        is_wrong = place % 3 == 0
        wrong += is_wrong and place < 10
        kind, subject = (
            (Kind.OTHER, 9) if is_wrong else (Kind.REJECT, None) if item.decision == "rejected" else (Kind.ACCEPT, None)
        )
        reviews.decide(number, ANN, kind, subject)
    found = labelled.risk(2, promised=0.5)
    assert (found.answered, found.reviewed, found.wrong, found.waiting) == (60, 10, wrong, 1)
    assert found.rate == wrong / 10
    assert labelled.risk(7).answered == 0
    reviews.decide(skipped, ANN, Kind.REJECT)
    assert labelled.risk(2).reviewed == len(sampled)


def test_answers_given_while_none_were_sampled_are_not_covered(database: Database) -> None:
    Reviews(database, share=0.0).offer([offer(1, "accepted"), offer(2)])
    Reviews(database, share=1.0).offer([offer(3, "accepted"), offer(4, "accepted")])
    found = LabelledProbes(database).risk(2, promised=0.01)
    assert (found.answered, found.rate, found.upper, found.verdict) == (2, None, 1.0, "open")


def test_rotating_a_key_makes_nobody_a_second_person(database: Database) -> None:
    reviews, keys = Reviews(database, people=2), Keys(database)
    first = keys.create(Role.REVIEWER)
    second = keys.rotate(first.key.prefix, overlap=60.0)
    third = keys.rotate(second.key.prefix, overlap=60.0)
    [number] = reviews.offer([offer(1)])
    assert number is not None
    reviews.decide(number, second.key.actor, Kind.ACCEPT)
    for made in (first, second, third):
        assert reviews.claim(made.key.actor) is None
        with pytest.raises(ConflictError, match="one it replaces"):
            reviews.decide(number, made.key.actor, Kind.ACCEPT)
    assert reviews.decide(number, keys.create(Role.REVIEWER).key.actor, Kind.ACCEPT).state is State.DECIDED


def test_many_subjects_are_erased_at_once(file_database: Database) -> None:
    reviews = Reviews(file_database)
    reviews.offer([offer(1), offer(2, candidates=(ReviewCandidate(300_000, 0.5, 0.5),))])
    numbers, digests = list(range(1, 280_000)), [f"{n:064x}" for n in range(3_000)]
    assert file_database.writing(lambda connection: erase_subjects(connection, numbers, digests)) == 1
    assert reviews.counts()["open"] == 1
