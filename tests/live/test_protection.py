"""A protected gallery stores its samples turned by a secret rotation, and answers as if it did not."""

from __future__ import annotations

import secrets
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holue
from holue.errors import InvalidEmbeddingsError, InvalidParameterError, StoreError
from holue.live.opening import restore
from holue.live.protection import VARIABLE, Rotation
from holue.live.renewal import NEW_KEY, renew
from holue.store.windows import search_files

N = 40
KEY = secrets.token_hex(32)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


@pytest.fixture(params=["memory", "directory", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        server: Any = request.getfixturevalue("postgres")
        return str(server.url(f"g{uuid.uuid4().hex[:12]}"))
    return ":memory:" if request.param == "memory" else str(tmp_path / "gallery")


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=16, max_size=16), st.integers(2, 40))
def test_a_rotation_is_orthogonal_and_goes_back(key: bytes, salt: bytes, dim: int) -> None:
    rotation = Rotation.of(key, salt, dim)
    X = np.random.default_rng(dim).standard_normal((7, dim)).astype(np.float32)
    turned = rotation.turned(X)
    wide = X.astype(np.float64)
    # float32 keeps 24 bits: each product of rows of length about √dim is right to about dim · 2⁻²³
    np.testing.assert_allclose(turned.astype(np.float64) @ turned.T, wide @ wide.T, atol=4 * dim * 2.0**-23)
    np.testing.assert_allclose(rotation.turned_back(turned), X, atol=1e-5)
    np.testing.assert_array_equal(Rotation.of(key, salt, dim).turned(X), turned)


def test_rotations_of_other_keys_and_salts_have_nothing_in_common() -> None:
    X = np.random.default_rng(0).standard_normal((200, 128)).astype(np.float32)
    turned = [Rotation.of(*given, 128).turned(X) for given in ((b"a" * 32, b"s"), (b"b" * 32, b"s"), (b"a" * 32, b"t"))]
    for one, other in [(X, turned[0]), (turned[0], turned[1]), (turned[0], turned[2])]:
        cosine = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
        assert np.abs(cosine.mean()) < 0.05  # the mean of 200 cosines of standard deviation 1/√128 each


def test_a_protected_gallery_answers_like_an_open_one(home: str, people: Any) -> None:
    X, y, other = people.development()
    probes = np.concatenate([people.probes(), X[-50:]])
    with (
        holue.open(home, create=True, dim=people.dim, protect=True) as gallery,
        holue.open(":memory:", dim=people.dim) as plain,
    ):
        for one in (gallery, plain):
            one.enroll(*people.several(range(N), 2))
            one.add_samples(*people.several(range(5), 1, seed=3))
            one.replace(*people.several(range(7, 9), 2, seed=4))
            one.calibrate()
        told, expected = gallery.identify(probes), plain.identify(probes)
        np.testing.assert_array_equal(told.subject, expected.subject)
        np.testing.assert_array_equal(told.decision, expected.decision)
        np.testing.assert_allclose(told.score, expected.score, atol=1e-6)
        for one in (gallery, plain):
            one.calibrate(X, y, gallery=other)
        assert gallery.status().threshold == pytest.approx(plain.status().threshold, abs=1e-6)
        labels = [f"p{person}" for person in range(30)] + [holue.UNKNOWN] * 50
        for one in (gallery, plain):
            one.calibrate(probes, labels, activate=False)
        told_of, expected_of = gallery.preview(3, probes, labels), plain.preview(3, probes, labels)
        assert told_of.rates == expected_of.rates
        assert told_of.threshold == pytest.approx(expected_of.threshold, abs=1e-6)
        sample = gallery.samples("p7")[0].embedding
        np.testing.assert_allclose(sample, plain.samples("p7")[0].embedding, atol=1e-5)
        again = gallery.at(gallery.version).identify(probes)
        np.testing.assert_array_equal(again.subject, gallery.identify(probes).subject)


def test_no_file_holds_an_embedding(tmp_path: Path, people: Any) -> None:
    home = tmp_path / "gallery"
    X, ids = people.several(range(N), 3)
    with holue.open(home, create=True, dim=people.dim, protect=True) as gallery:
        gallery.enroll(X, ids)
        gallery.calibrate()
        gallery.snapshot("monday")
        gallery.compact()
        turned = gallery.store.samples("p3")[0].embedding
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(file.found for file in search_files(files, tmp_path, X)) == 0
    assert sum(file.found for file in search_files(files, tmp_path, turned[None]))
    with holue.open(home) as gallery:
        assert gallery.erase(["p3"]).clean
    assert sum(file.found for file in search_files(files, tmp_path, turned[None])) == 0


def test_the_key_is_needed_and_must_be_the_right_one(
    tmp_path: Path, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "gallery"
    with holue.open(home, create=True, dim=people.dim, protect=True, threshold=0.5, method="galue") as gallery:
        gallery.enroll(*people.several(range(N), 2))
        snapshot = gallery.snapshot()
    monkeypatch.setenv(VARIABLE, "00" * 32)
    with pytest.raises(InvalidParameterError, match="another key"):
        holue.open(home)
    for wrong in ("", "ab", "x" * 64):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(InvalidParameterError, match=VARIABLE):
            holue.open(home, read_only=True)
    with pytest.raises(InvalidParameterError, match=VARIABLE):
        holue.open(tmp_path / "other", create=True, dim=4, protect=True)
    monkeypatch.setenv(VARIABLE, KEY)
    with restore(str(snapshot), tmp_path / "again") as gallery:
        assert gallery.identify(people.samples(3, 1)).candidate_subjects[0, 0] == "p3"


def test_an_open_gallery_cannot_become_protected(tmp_path: Path) -> None:
    holue.open(tmp_path / "gallery", create=True, dim=4).close()
    with pytest.raises(InvalidParameterError, match="protect=True"):
        holue.open(tmp_path / "gallery", create=True, dim=4, protect=True)


@pytest.mark.parametrize(
    "bad", [[[1.0, 2.0]], [[np.nan] * 4], [[0.0] * 4], [["a"] * 4], [[1.0], [2.0, 3.0]], [1.0] * 4]
)
def test_bad_embeddings_are_refused_as_ever(bad: Any) -> None:
    with holue.open(":memory:", dim=4, protect=True, threshold=0.5, method="galue") as gallery:
        with pytest.raises(InvalidEmbeddingsError):
            gallery.enroll(bad, ["ann"] * len(bad))
        gallery.enroll(np.eye(4)[:2], ["ann", "bob"])
        with pytest.raises(InvalidEmbeddingsError):
            gallery.identify(bad)
        left_out = gallery.enroll([[0, 0, 1, 0], [np.nan] * 4], ["cay", "dan"], skip_bad=True).left_out
        assert [row.row for row in left_out] == [1]


def said_of(sample: Any) -> tuple[Any, ...]:
    return sample.medium, sample.origin or "", sample.concentration or 0.0, sample.time


def test_a_renewed_gallery_answers_the_same_under_another_key(
    tmp_path: Path, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, again = tmp_path / "gallery", tmp_path / "renewed"
    with holue.open(home, create=True, dim=people.dim, protect=True, model="m", target_fpir=0.1) as gallery:
        X, ids = people.several(range(N), 2)
        kept = {"medium": [f"photo-{n}" for n in range(len(X))], "origin": [f"file-{n}" for n in range(len(X))]}
        gallery.enroll(X, ids, consent="form 12", metadata={"p3": {"desk": 7}}, **kept)
        gallery.add_samples(people.samples(4, 1, seed=2), ["p4"], concentration=[90.0])
        gallery.remove(["p0"])
        gallery.calibrate(*people.development()[:2], gallery=people.development()[2])
        monkeypatch.setenv(NEW_KEY, "cd" * 32)
        renew(gallery, again, by="ann")
        first, stored = gallery.identify(people.probes()), gallery.store.samples("p3")
        samples = {name: gallery.samples(name) for name in ("p3", "p4")}
    with pytest.raises(InvalidParameterError, match="another key"):
        holue.open(again)
    monkeypatch.setenv(VARIABLE, "cd" * 32)
    with holue.open(again) as renewed:
        second = renewed.identify(people.probes())
        np.testing.assert_array_equal(second.subject, first.subject)
        np.testing.assert_array_equal(second.decision, first.decision)
        np.testing.assert_allclose(second.score, first.score, atol=1e-6)
        assert (len(renewed), renewed.model, renewed.settings.target_fpir) == (N - 1, "m", 0.1)
        subject = renewed.subject("p3")
        assert subject is not None
        assert (subject.consent, subject.metadata) == ("form 12", {"desk": 7})
        for name, old in samples.items():
            new = renewed.samples(name)
            assert sorted(map(said_of, old)) == sorted(map(said_of, new))
        one, other = stored[0].embedding, renewed.store.samples("p3")[0].embedding
        assert not np.allclose(one, other, atol=0.1)
    with pytest.raises(StoreError, match="exists already"), holue.open(again) as renewed:
        renew(renewed, again)
