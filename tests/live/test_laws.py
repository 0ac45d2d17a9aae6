"""Whatever was done to a living gallery, it answers as a recogniser fitted from scratch with the samples that are left."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holue
from holue.errors import InvalidInputError
from holue.gallery.gallery import Gallery
from holue.live import follower
from holue.live.live_gallery import LiveGallery
from holue.recognition.answer.identifications import Identifications
from holue.recognition.recognizer import OpenSetRecognizer

person = st.integers(0, 11)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("enroll"), st.lists(person, min_size=1, max_size=4, unique=True), st.integers(1, 3)),
        st.tuples(st.just("add"), person, st.integers(1, 2)),
        st.tuples(st.just("replace"), person, st.integers(1, 2)),
        st.tuples(st.just("remove"), st.lists(person, min_size=1, max_size=2, unique=True)),
        st.tuples(st.just("remove_sample"), person),
        st.tuples(st.just("rename"), person, person),
        st.tuples(st.just("merge"), person, person),
        st.tuples(st.just("split"), person, person),
        st.tuples(
            st.just("undo"),
        ),
        st.tuples(st.just("erase"), person),
        st.tuples(st.just("compact"), st.booleans()),
        st.tuples(
            st.just("reopen"),
        ),
    ),
    max_size=12,
)


def name(number: int) -> str:
    return f"p{number}"


def take(gallery: LiveGallery, step: tuple[Any, ...], people: Any, seed: int) -> None:
    """One step; what the store refuses changes nothing."""
    match step:
        case ("enroll", persons, n):
            gallery.enroll(
                np.concatenate([people.samples(p, n, seed) for p in persons]),
                [name(p) for p in persons for _ in range(n)],
                medium=[medium for _ in persons for medium in ("clip", "clip", "")[:n]],
            )
        case ("add", p, n):
            gallery.add_samples(people.samples(p, n, seed), [name(p)] * n, medium=["clip", ""][:n])
        case ("replace", p, n):
            gallery.replace(people.samples(p, n, seed), [name(p)] * n)
        case ("remove", persons):
            gallery.remove([name(p) for p in persons])
        case ("remove_sample", p):
            gallery.remove_samples([sample.number for sample in gallery.samples(name(p))][:1])
        case ("rename", p, q):
            gallery.rename(name(p), name(q))
        case ("merge", p, q):
            gallery.merge([name(p)], into=name(q))
        case ("split", p, q):
            gallery.split(name(p), [sample.number for sample in gallery.samples(name(p))][:1], new=name(q))
        case ("undo",):
            gallery.undo()
        case ("erase", p):
            gallery.erase([name(p)])
        case ("compact", forget):
            gallery.compact(forget_before=gallery.version if forget else None)


def from_scratch(gallery: LiveGallery, calibrated: OpenSetRecognizer) -> OpenSetRecognizer:
    """A recogniser with the samples that are left, and the calibration of another one of any size."""
    X, y, media = [], [], []
    for subject in gallery.subjects():
        for sample in gallery.samples(subject.id):
            X.append(sample.embedding)
            y.append(subject.id)
            media.append(sample.medium or f"own {sample.number}")
    made = OpenSetRecognizer(**calibrated.get_params())
    state = calibrated._state
    made._cell.begin(state.with_gallery(Gallery.from_samples(np.array(X), y, media=media), made.hold))
    return made


def assert_same(one: Identifications, other: Identifications) -> None:
    assert one.subject.tolist() == other.subject.tolist()
    assert one.decision.tolist() == other.decision.tolist()
    assert one.candidate_subjects.tolist() == other.candidate_subjects.tolist()
    assert np.array_equal(one.candidate_scores, other.candidate_scores)
    for field in ("p_subject", "p_unknown", "quality", "uncertainty", "candidate_probabilities"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)


@pytest.fixture(scope="module")
def calibrated(people: Any) -> OpenSetRecognizer:
    X, y, gallery = people.development()
    start = people.several(range(6), 3)
    return OpenSetRecognizer().fit(*start).calibrate(X, y, gallery=gallery)


@pytest.mark.parametrize(("home", "few"), [("memory", 64), ("directory", 64), ("directory", 0)])
@given(steps=steps)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_sequence_of_changes_answers_as_if_fitted_from_scratch(
    home: str, few: int, steps: list[tuple[Any, ...]], calibrated: OpenSetRecognizer, people: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(follower, "FEW", few):
        path = ":memory:" if home == "memory" else str(Path(folder, "gallery"))
        gallery = holue.open(path, create=True, dim=people.dim)
        try:
            gallery.enroll(*people.several(range(6), 3))
            X, y, other = people.development()
            gallery.calibrate(X, y, gallery=other)
            for seed, step in enumerate(steps):
                if step == ("reopen",) and home == "directory":
                    gallery.close()
                    gallery = holue.open(path)
                with contextlib.suppress(InvalidInputError):
                    take(gallery, step, people, seed)
                if len(gallery) > 1:
                    assert_same(
                        gallery.identify(people.probes()), from_scratch(gallery, calibrated).identify(people.probes())
                    )
                now, enrolled = gallery.current.gallery, gallery.subjects()
                assert ([] if now is None else now.numbers.tolist()) == [subject.number for subject in enrolled]
                assert ([] if now is None else now.subjects.tolist()) == [subject.id for subject in enrolled]
                assert gallery.version == gallery.store.version
        finally:
            gallery.close()


@given(steps=steps)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_past_version_answers_as_it_did(steps: list[tuple[Any, ...]], people: Any) -> None:
    with holue.open(":memory:", dim=people.dim) as gallery:
        gallery.enroll(*people.several(range(6), 3))
        X, y, other = people.development()
        gallery.calibrate(X, y, gallery=other)
        answers = {}
        for seed, step in enumerate(step for step in steps if step[0] not in ("erase", "compact")):
            with contextlib.suppress(InvalidInputError):
                take(gallery, step, people, seed)
            if len(gallery) > 1:
                answers[gallery.version] = gallery.identify(people.probes())
        for version, before in answers.items():
            assert_same(gallery.at(version).identify(people.probes()), before)
