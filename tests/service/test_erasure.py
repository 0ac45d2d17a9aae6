"""An erasure reaches the ledger: nothing of the subject is left in any file."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holue
from holue.errors import ErasureIncompleteError
from holue.live.live_gallery import LiveGallery
from holue.service.ledger.audit.audit_chain import Event
from holue.service.ledger.idempotency import Response
from holue.service.ledger.ledger import Ledger, erase_everywhere
from holue.service.ledger.reviewing.review_item import Kind
from holue.service.ledger.reviewing.review_offer import Offer
from holue.store.windows import search_files

DIM = 32
X = np.random.default_rng(5).standard_normal((6, DIM)).astype(np.float32)
PROBES = (X + 0.3 * np.random.default_rng(6).standard_normal(X.shape)).astype(np.float32)


@pytest.fixture(params=["file", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "gallery")
    server: Any = request.getfixturevalue("postgres")
    return str(server.url(f"g{uuid.uuid4().hex[:12]}"))


@pytest.fixture
def gallery(home: str) -> Iterator[LiveGallery]:
    with holue.open(home, create=True, dim=DIM, method="galue", threshold=0.5, filter_below=2.0) as gallery:
        gallery.enroll(X, [f"subject-{i}" for i in range(len(X))])
        yield gallery


@pytest.fixture
def ledger(home: str, gallery: LiveGallery) -> Iterator[Ledger]:
    with Ledger.open(home, keep_strangers=1000.0) as ledger:
        yield ledger


def number_of(gallery: LiveGallery, name: Any) -> int | None:
    subject = gallery.subject(name)
    return None if subject is None else subject.number


def queue(gallery: LiveGallery, ledger: Ledger, probes: np.ndarray, request_id: str) -> list[int]:
    answers = gallery.identify(probes)
    offers = [
        Offer.of(
            answer, probe, None, number_of=lambda name: number_of(gallery, name), request_id=request_id, probe=place,
            gallery_version=gallery.version, calibration=None, model=gallery.model,
        )
        for place, (answer, probe) in enumerate(zip(answers, probes))
    ]  # fmt: skip
    return [number for number in ledger.reviews.offer(offers) if number is not None]


def held(home: str, vectors: np.ndarray) -> int:
    """How many windows of the vectors the files of a home hold."""
    paths = [path for path in Path(home).rglob("*") if path.is_file()]
    return sum(file.found for file in search_files(paths, Path(home), vectors))


def test_erasing_reaches_reviews_labels_strangers_and_answers(home: str, gallery: LiveGallery, ledger: Ledger) -> None:
    numbers = queue(gallery, ledger, PROBES, "r1")
    assert len(numbers) == len(X)
    for place, number in enumerate(numbers):
        ledger.reviews.decide(number, "aa/reviewer", Kind.ACCEPT)
        assert ledger.reviews.get(number).verdict is not None, place
    ledger.strangers.add(X[2:4], request_id="r2", model=None)  # the bytes that were enrolled
    ledger.idempotency.begin("aa", "k", digest="d")
    ledger.idempotency.finish("aa", "k", Response(201, "application/json", b'{"subject": "subject-2"}'))
    ledger.audit_log.append([Event("identify", "aa/operator", "r1", 1.0, 2.0, answer={"subject": "subject-2"})])
    assert ledger.labelled_probes.read().subjects.tolist() == [1, 2, 3, 4, 5, 6]

    receipt = erase_everywhere(gallery, ledger, ["subject-2"], by="test")

    assert receipt.clean
    assert sorted(ledger.labelled_probes.read().subjects.tolist()) == [1, 2, 4, 5, 6]
    assert [group.members for group in ledger.strangers.groups(0.5, model=None)] == [(2,)]
    kept = ledger.idempotency.begin("aa", "k", digest="d")
    assert kept is not None
    assert kept.body is None
    assert ledger.problems() == []
    assert gallery.subject("subject-2") is None
    searched = "stranger" if home.startswith("postgresql") else "service/ledger.db"
    assert any(searched in file.file for file in receipt.files)
    if not home.startswith("postgresql"):
        assert held(home, np.stack([X[2], PROBES[2]])) == 0
        assert held(home, PROBES[3:4])  # the search finds what is still there


def test_a_removed_subject_is_erased_from_the_ledger_too(home: str, gallery: LiveGallery, ledger: Ledger) -> None:
    numbers = queue(gallery, ledger, PROBES, "r1")
    gallery.remove(["subject-1"])
    assert erase_everywhere(gallery, ledger, ["subject-1"]).clean
    assert [item.number for item in ledger.reviews.items()] == [numbers[0], *numbers[2:]]
    if not home.startswith("postgresql"):
        assert held(home, np.stack([X[1], PROBES[1]])) == 0


def test_an_unknown_subject_changes_nothing(gallery: LiveGallery, ledger: Ledger) -> None:
    queue(gallery, ledger, PROBES, "r1")
    with pytest.raises(holue.errors.InvalidSubjectsError):
        erase_everywhere(gallery, ledger, ["nobody"])
    assert len(ledger.reviews.items()) == len(X)


def test_without_the_ledger_the_search_tells_that_bytes_are_left(gallery: LiveGallery, ledger: Ledger) -> None:
    ledger.strangers.add(X[2:3], request_id="r", model=None)
    if ledger.database.on_server:
        with pytest.raises(ErasureIncompleteError, match="still holds erased bytes"):
            gallery.erase(["subject-2"])
    else:
        assert not gallery.erase(["subject-2"]).clean


def test_the_home_tolerates_the_ledger(tmp_path: Path) -> None:
    home, other = tmp_path / "gallery", tmp_path / "restored"
    with holue.open(home, create=True, dim=DIM, threshold=0.5, method="galue") as gallery:
        gallery.enroll(X, [f"subject-{i}" for i in range(len(X))])
        with Ledger.open(home) as ledger:
            ledger.keys.first()
            snapshot = gallery.snapshot("monday")
            gallery.compact()
            assert gallery.verify() == []
    with holue.open(home) as gallery:
        assert len(gallery) == len(X)
    from holue.live.opening import restore

    with restore(str(snapshot), other) as restored:
        assert len(restored) == len(X)
    assert not (other / "service").exists()  # keys that were revoked since must not come back


def test_erased_bytes_are_in_no_file_of_the_servers_tables(own_postgres: Any) -> None:
    import psycopg

    url = own_postgres.url("g")
    with holue.open(url, create=True, dim=DIM, method="galue", threshold=0.5, filter_below=2.0) as gallery:
        gallery.enroll(X, [f"subject-{i}" for i in range(len(X))])
        with Ledger.open(url, keep_strangers=1000.0) as ledger:
            queue(gallery, ledger, PROBES, "r1")
            ledger.strangers.add(X[2:3], request_id="r", model=None)
            erase_everywhere(gallery, ledger, ["subject-2"])
            with psycopg.connect(own_postgres.database, autocommit=True) as connection:
                connection.execute("CHECKPOINT")
            base = sorted((own_postgres.folder / "base").rglob("*"))
            files = [path for path in base if path.is_file() and path.stat().st_size < 1 << 24]
            assert (
                sum(file.found for file in search_files(files, own_postgres.folder, np.stack([X[2], PROBES[2]]))) == 0
            )
            assert sum(file.found for file in search_files(files, own_postgres.folder, PROBES[3:4]))


def test_the_probes_of_a_protected_gallery_are_stored_turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLUE_TEMPLATE_KEY", "ab" * 32)
    home, settings = str(tmp_path / "gallery"), {"method": "galue", "threshold": 0.5, "filter_below": 2.0}
    with holue.open(home, create=True, dim=DIM, protect=True, **settings) as gallery:
        gallery.enroll(X, [f"subject-{i}" for i in range(len(X))])
        with Ledger.open(home, keep_strangers=1000.0, rotation=gallery.rotation) as ledger:
            numbers = queue(gallery, ledger, PROBES, "r1")
            kept = ledger.strangers.add(X, request_id="r2", model=None)
            assert held(home, np.concatenate([X, PROBES])) == 0
            np.testing.assert_allclose(ledger.reviews.get(numbers[0]).embedding, PROBES[0], atol=1e-5)
            item = ledger.reviews.decide(numbers[1], "aa/reviewer", Kind.ACCEPT)
            np.testing.assert_allclose(item.embedding, PROBES[1], atol=1e-5)
            np.testing.assert_allclose(ledger.labelled_probes.read().embeddings[0], PROBES[1], atol=1e-5)
            np.testing.assert_allclose(ledger.strangers.read(kept).embeddings, X, atol=1e-5)
            assert erase_everywhere(gallery, ledger, ["subject-2"]).clean
            groups = ledger.strangers.groups(0.99, model=None)
            assert {number for group in groups for number in group.members} == {*kept} - {kept[2]}
