from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import holue
from holue.errors import CalibrationDataError
from holue.live.live_gallery import LiveGallery
from holue.service.calibration import calibrate_from_reviews, preview_on_reviews
from holue.service.ledger.ledger import Ledger
from holue.service.ledger.reviewing.review_item import Kind
from holue.service.ledger.reviewing.review_offer import Offer, permanent_number

DIM = 16
CENTRES = np.random.default_rng(1).standard_normal((260, DIM))


def samples(persons: range, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (CENTRES[list(persons)] + 0.35 * rng.standard_normal((len(persons), DIM))).astype(np.float32)


@pytest.fixture
def gallery(tmp_path: Path) -> Iterator[LiveGallery]:
    with holue.open(tmp_path / "gallery", create=True, dim=DIM, method="galue", threshold=0.6, model="m") as gallery:
        for seed in range(2):
            add = gallery.enroll if seed == 0 else gallery.add_samples
            add(samples(range(60), seed), [f"p{person}" for person in range(60)])
        yield gallery


def ask(gallery: LiveGallery, ledger: Ledger, persons: range) -> list[tuple[int, int]]:
    """Reviews of a probe of each person: number of the review and the person."""
    probes = samples(persons, 99)
    numbers = {subject.id: subject.number for subject in gallery.subjects()}
    offers = [
        Offer.of(
            answer, probe, None, number_of=numbers.get, request_id=f"r{person}", probe=0, gallery_version=gallery.version,
            calibration=gallery.current.calibration, model="m",
        )
        for answer, probe, person in zip(gallery.identify(probes), probes, persons)
    ]  # fmt: skip
    return [(number, person) for number, person in zip(ledger.reviews.offer(offers), persons) if number is not None]


def decide(gallery: LiveGallery, ledger: Ledger, reviews: list[tuple[int, int]]) -> None:
    for number, person in reviews:
        subject = gallery.subject(f"p{person}")
        if subject is None:
            ledger.reviews.decide(number, "aa/reviewer", Kind.REJECT)
        else:
            ledger.reviews.decide(number, "aa/reviewer", Kind.OTHER, subject.number)


def test_what_reviewers_decided_becomes_a_candidate(gallery: LiveGallery) -> None:
    with Ledger.open(gallery.store.path, review_share=1.0) as ledger:  # type: ignore[attr-defined]
        reviews = ask(gallery, ledger, range(260))
        assert len(reviews) == 260
        decide(gallery, ledger, reviews)
        gallery.remove(["p3"])
        entry = calibrate_from_reviews(gallery, ledger, by="ann")
    assert (entry.source, entry.state) == ("reviews", "candidate")
    assert gallery.current.calibration is None
    reference = gallery.calibrate(
        np.concatenate([samples(range(260), 99)[:3], samples(range(260), 99)[4:]]),
        [f"p{person}" if person < 60 else holue.UNKNOWN for person in range(260) if person != 3],
        activate=False,
    )
    one, other = (
        gallery.preview(entry.number, samples(range(9), 7)),
        gallery.preview(reference.number, samples(range(9), 7)),
    )
    assert one.threshold == other.threshold


def test_filtered_answers_alone_do_not_calibrate(gallery: LiveGallery) -> None:
    with Ledger.open(gallery.store.path) as ledger, pytest.raises(CalibrationDataError, match="review_share"):  # type: ignore[attr-defined]
        calibrate_from_reviews(gallery, ledger)


def test_the_sample_is_one_of_all_answers_and_waits_for_what_is_undecided(tmp_path: Path) -> None:
    with holue.open(tmp_path / "gallery", create=True, dim=DIM, model="m", method="galue", threshold=0.6) as gallery:
        gallery.enroll(samples(range(60), 0), [f"p{person}" for person in range(60)])
        half = float(np.median(gallery.identify(samples(range(260), 99)).quality))
    home = tmp_path / "gallery"
    with holue.open(home, filter_below=half) as gallery, Ledger.open(home, review_share=0.5) as ledger:
        reviews = ask(gallery, ledger, range(260))
        secret = ledger.database.secret()
        place = {person: permanent_number(secret, f"r{person}", 0) for person in range(260)}
        filtered = {number for number, _ in reviews if ledger.reviews.get(number).decision == "filtered"}
        assert 20 < len(filtered) < len(reviews) - 20
        decide(gallery, ledger, reviews)
        sampled = ledger.labelled_probes.sample(model="m")
        expected = [person for person in range(260) if place[person] < 0.5]
        np.testing.assert_array_equal(
            np.sort(sampled.embeddings[:, 0]), np.sort(samples(range(260), 99)[expected][:, 0])
        )
        number, person = min(reviews, key=lambda review: abs(place[review[1]] - 0.2))
        ledger.reviews.undo(number, "aa/reviewer")
        fewer = ledger.labelled_probes.sample(model="m")
        assert len(fewer) == sum(place[other] < place[person] for other in range(260))
        assert len(ledger.labelled_probes.sample([5], model="m")) == 0


def test_a_calibration_is_previewed_on_what_was_reviewed(gallery: LiveGallery) -> None:
    with Ledger.open(gallery.store.path, review_share=1.0) as ledger:  # type: ignore[attr-defined]
        gallery.calibrate(activate=False)
        with pytest.raises(CalibrationDataError, match="nothing has been reviewed"):
            preview_on_reviews(gallery, ledger, 1)
        decide(gallery, ledger, ask(gallery, ledger, range(100)))
        told = preview_on_reviews(gallery, ledger, 1)
        labels = [f"p{person}" if person < 60 else holue.UNKNOWN for person in range(100)]
        expected = gallery.preview(1, samples(range(100), 99), labels)
    assert (told.rates, told.active_rates, told.changes) == (expected.rates, expected.active_rates, expected.changes)
    assert told.rates is not None
    assert (told.rates.enrolled, told.rates.strangers) == (60, 40)
