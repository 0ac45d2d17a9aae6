"""What is promised of an open gallery: durable, one version per answer, and nothing left after an erasure."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holue
from holue.errors import (
    CorruptStoreError,
    GalleryTooSmallError,
    HolueError,
    InvalidConcentrationError,
    InvalidEmbeddingsError,
    InvalidParameterError,
    NotCalibratedError,
    StoreLockedError,
)
from holue.live.opening import restore
from holue.recognition.answer.identifications import Identifications
from holue.recognition.recognizer import OpenSetRecognizer
from holue.store.sqlite.store import SqliteStore
from holue.store.windows import search_files

FIELDS = (
    "subject", "decision", "score", "p_subject", "p_unknown", "quality", "uncertainty",
    "candidate_subjects", "candidate_scores", "candidate_probabilities", "reason",
)  # fmt: skip


def assert_identical(one: Identifications, other: Identifications) -> None:
    for field in FIELDS:
        assert getattr(one, field).tolist() == getattr(other, field).tolist(), field


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path / "gallery")


@pytest.fixture
def filled(home: str, people: Any) -> str:
    """A calibrated gallery of forty, closed."""
    with holue.open(home, create=True, dim=people.dim, model="m1") as gallery:
        gallery.enroll(*people.several(range(40), 3))
        gallery.calibrate()
    return home


def test_a_calibration_answers_with_the_same_bits_after_reopening(filled: str, people: Any) -> None:
    with holue.open(filled) as gallery:
        before = gallery.identify(people.probes())
        assert gallery.current.calibration == 1
    with holue.open(filled, read_only=True) as gallery:
        assert_identical(gallery.identify(people.probes()), before)


def test_leave_one_out_from_the_store_is_that_of_a_recogniser(filled: str, people: Any) -> None:
    reference = OpenSetRecognizer().fit(*people.several(range(40), 3))
    reference.calibrate_leave_one_out(*people.several(range(40), 3))
    with holue.open(filled) as gallery:
        now = gallery.current.state
        assert now is not None
        assert now.point.threshold == pytest.approx(reference.operating_point_.threshold, abs=1e-12)
        assert (
            gallery.identify(people.probes()).subject.tolist() == reference.identify(people.probes()).subject.tolist()
        )


def test_a_restored_snapshot_answers_with_the_same_bits(filled: str, people: Any, tmp_path: Path) -> None:
    with holue.open(filled) as gallery:
        before = gallery.identify(people.probes())
        made = gallery.snapshot("monday")
        gallery.remove(["p3"])
    with restore(str(made), tmp_path / "again") as gallery:
        assert_identical(gallery.identify(people.probes()), before)


def test_an_old_answer_is_computed_again_with_the_calibration_of_its_time(filled: str, people: Any) -> None:
    with holue.open(filled) as gallery:
        first = gallery.identify(people.probes())
        asked = gallery.version, gallery.current.calibration
        gallery.remove(["p1", "p2"])
        gallery.calibrate(*people.development()[:2], gallery=people.development()[2])
        assert gallery.current.calibration == 2
        assert_identical(gallery.at(asked[0]).identify(people.probes()), first)
        assert_identical(gallery.at(asked[0], calibration=asked[1]).identify(people.probes()), first)
        with pytest.raises(InvalidParameterError, match="no calibration 7"):
            gallery.at(asked[0], calibration=7)


def test_settings_are_kept_and_given_ones_hold_for_one_opening(home: str) -> None:
    holue.open(home, create=True, dim=4, method="galue", threshold=0.8).close()
    with holue.open(home, threshold=0.9) as gallery:
        assert (gallery.settings.method, gallery.settings.threshold) == ("galue", 0.9)
    with holue.open(home) as gallery:
        assert gallery.settings.threshold == 0.8
    with pytest.raises(InvalidParameterError, match="'colour' is no setting"):
        holue.open(home, colour="red")
    holue.open(home).close()  # the refused one let go of the lock


def test_a_creation_that_was_cut_off_is_completed_by_the_next(home: str) -> None:
    SqliteStore.create(home, dim=4).close()  # as if killed before the settings were kept
    holue.open(home, create=True, dim=4, method="galue", threshold=0.8).close()
    with holue.open(home) as gallery:
        assert gallery.settings.threshold == 0.8


def test_one_writes_and_a_second_writer_is_refused(filled: str) -> None:
    with holue.open(filled), pytest.raises(StoreLockedError):
        holue.open(filled)


def test_a_reader_follows_when_it_refreshes(filled: str, people: Any) -> None:
    with holue.open(filled) as writer, holue.open(filled, read_only=True) as reader:
        writer.enroll(people.samples(50, 2), ["p50"] * 2)
        writer.remove(["p0"])
        assert len(reader) == 40
        assert reader.refresh() == writer.version
        assert_same_names(reader, writer)
        writer.calibrate()
        reader.refresh()
        assert reader.current.calibration == 2
        assert_identical(reader.identify(people.probes()), writer.identify(people.probes()))
        with pytest.raises(HolueError, match="open for reading"):
            reader.remove(["p2"])


def test_a_reader_follows_beyond_versions_that_were_forgotten(filled: str, people: Any) -> None:
    with holue.open(filled) as writer, holue.open(filled, read_only=True) as reader:
        writer.enroll(people.samples(50, 2), ["p50"] * 2)
        writer.rename("p4", "four")
        writer.compact(forget_before=writer.version)
        assert reader.refresh() == writer.version
        assert_same_names(reader, writer)


def test_a_reader_that_missed_a_split_before_an_erasure_keeps_nothing_of_it(home: str, people: Any) -> None:
    with holue.open(home, create=True, dim=people.dim, method="galue", threshold=0.5) as writer:
        writer.enroll(*people.several(range(5), 2))
        with holue.open(home, read_only=True) as reader:
            writer.split("p1", [writer.samples("p1")[0].number], new="other")
            writer.erase(["other"])
            reader.refresh()
            assert_identical(reader.identify(people.probes()), writer.identify(people.probes()))
            assert reader.identify(writer.samples("p1")[0].embedding[None]).score[0] == pytest.approx(1, abs=1e-6)


def assert_same_names(one: Any, other: Any) -> None:
    assert sorted(one.current.gallery.subjects.tolist()) == sorted(other.current.gallery.subjects.tolist())


def test_an_answer_is_of_one_version_while_others_enrol_and_remove(home: str, people: Any) -> None:
    """Person 0 is there under one name or the other, never under both or neither."""
    with holue.open(home, create=True, dim=people.dim, method="galue", threshold=0.1) as gallery:
        gallery.enroll(*people.several(range(12), 2))
        probe, wrong, stop = people.samples(0, 1, seed=9), [], threading.Event()

        def ask() -> None:
            while not stop.is_set():
                named = [c for c in gallery.identify(probe, top_k=50).candidate_subjects[0] if c in ("p0", "renamed")]
                if len(named) != 1:
                    wrong.append(named)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for step in range(25):
            gallery.rename("p0", "renamed")
            gallery.enroll(people.samples(20 + step, 1), [f"p{20 + step}"])
            gallery.rename("renamed", "p0")
            gallery.remove([f"p{20 + step}"])
        stop.set()
        for thread in threads:
            thread.join()
        assert not wrong
        assert len(gallery) == 12


def test_many_threads_enrol_and_all_are_there(home: str, people: Any) -> None:
    with holue.open(home, create=True, dim=people.dim, method="galue", threshold=0.5) as gallery:
        gallery.enroll(*people.several(range(2), 2))
        missing = []

        def enrol(first: int) -> None:
            for person in range(first, first + 8):
                version = gallery.enroll(people.samples(person, 1), [f"p{person}"]).version
                if gallery.version < version or f"p{person}" not in gallery.current.gallery.subjects:  # type: ignore[union-attr]
                    missing.append(person)

        threads = [threading.Thread(target=enrol, args=(10 * k,)) for k in range(1, 7)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not missing
        assert len(gallery) == 2 + 6 * 8


@pytest.fixture
def cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a small gallery keeps its templates."""
    for name in ("holue.live.template_cache", "holue.live.follower"):
        monkeypatch.setattr(f"{name}.SMALLEST", 2)


@pytest.mark.usefixtures("cached")
def test_kept_templates_answer_like_samples_and_follow_changes(filled: str, people: Any) -> None:
    with holue.open(filled) as gallery:
        gallery.compact()
        before = gallery.identify(people.probes())
    assert (Path(filled) / "derived" / "templates").is_dir()
    with holue.open(filled) as gallery:
        assert (
            isinstance(gallery.current.gallery.parts[0].segment.directions, np.memmap)
            or not gallery.current.gallery.parts[0].segment.directions.flags.owndata
        )  # type: ignore[union-attr]
        assert_identical(gallery.identify(people.probes()), before)
        gallery.rename("p0", "zero")
        gallery.add_samples(people.samples(1, 1, seed=3), ["p1"])
        after = gallery.identify(people.probes())
    with holue.open(filled, read_only=True) as gallery:
        assert gallery.identify(people.probes()).subject.tolist() == after.subject.tolist()
        assert gallery.identify(people.probes()).score.tolist() == after.score.tolist()


@pytest.mark.usefixtures("cached")
def test_closing_keeps_the_templates_that_answer_and_pools_nothing(
    filled: str, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gallery = holue.open(filled)
    gallery.enroll(*people.several(range(40, 70), 2))
    gallery.remove(["p41"])
    expected = gallery.identify(people.probes())

    def refuse(*_: Any) -> None:
        raise AssertionError("samples were pooled again")

    monkeypatch.setattr("holue.live.follower.built", refuse)
    gallery.close()
    with holue.open(filled) as again:  # from the kept templates: building anew is refused here too
        assert_identical(again.identify(people.probes()), expected)


@pytest.mark.usefixtures("cached")
def test_templates_are_not_kept_of_a_version_before_an_erasure(filled: str) -> None:
    with holue.open(filled) as gallery:
        direction = gallery.current.gallery.directions[0].copy()  # type: ignore[union-attr]
        gallery.store.erase(["p0"])  # the version that answers has not followed yet
        gallery.compact()
    files = [path for path in Path(filled).rglob("*") if path.is_file()]
    assert (Path(filled) / "derived" / "templates").is_dir()
    assert not [entry for entry in search_files(files, Path(filled), direction[None]) if entry.found]


@pytest.mark.usefixtures("cached")
def test_templates_of_another_database_are_not_used(filled: str, people: Any, tmp_path: Path) -> None:
    with holue.open(filled) as gallery:
        gallery.compact()
    other = str(tmp_path / "other")
    with holue.open(other, create=True, dim=people.dim, method="galue", threshold=0.5) as gallery:
        gallery.enroll(*people.several(range(60, 70), 2))
        gallery.compact()
    (Path(other) / "derived").rename(tmp_path / "aside")
    (Path(filled) / "derived").rename(Path(other) / "derived")
    with holue.open(other) as gallery:
        assert set(gallery.current.gallery.subjects) == {f"p{person}" for person in range(60, 70)}  # type: ignore[union-attr]


@pytest.mark.usefixtures("cached")
def test_damaged_templates_are_named(filled: str) -> None:
    with holue.open(filled) as gallery:
        gallery.compact()
        assert gallery.verify() == []
        file = Path(filled) / "derived" / "templates" / "directions.npy"
        data = bytearray(file.read_bytes())
        data[-5] ^= 1
        file.write_bytes(bytes(data))
        assert "directions.npy" in gallery.verify()[0].what


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("through", ["gallery", "store", "purge"])
def test_an_erasure_leaves_no_trace_in_any_file(home: str, people: Any, through: str) -> None:
    X = np.tile(people.samples(0, 1), 4).reshape(1, -1)  # 64 numbers: the int8 form has a 64-byte window too
    others = np.random.default_rng(2).standard_normal((20, X.shape[1]))
    with holue.open(home, create=True, dim=X.shape[1], method="galue", threshold=0.5) as gallery:
        gallery.enroll(others, [f"p{i}" for i in range(20)])
        gallery.enroll(X, ["erased"], retain_until=1.0)
        gallery.snapshot("before")
        gallery.compact()  # keeps templates, which are this very direction
        files = [path for path in Path(home).rglob("*") if path.is_file()]
        assert sum(found.found for found in search_files(files, Path(home), X)) > 0
        if through == "purge":
            assert gallery.purge(dry_run=True)[0] == [21]
            receipt = gallery.purge()[1]
        else:
            receipt = (gallery if through == "gallery" else gallery.store).erase(["erased"])
        assert receipt is not None
        assert receipt.clean
        gallery.refresh()
        assert "erased" not in gallery.current.gallery.subjects  # type: ignore[union-attr]
    with holue.open(home) as gallery:
        assert "erased" not in gallery.current.gallery.subjects  # type: ignore[union-attr]
    files = [path for path in Path(home).rglob("*") if path.is_file()]
    assert sum(found.found for found in search_files(files, Path(home), X)) == 0


def test_no_hash_of_a_sample_is_kept_with_a_calibration(filled: str) -> None:
    with holue.open(filled) as gallery:
        assert gallery.current.state.calibration_fingerprints is None  # type: ignore[union-attr]


def test_a_bad_batch_names_the_row_and_enrols_nothing(filled: str, people: Any) -> None:
    X = people.samples(60, 3)
    X[1, 2] = np.nan
    with holue.open(filled) as gallery:
        with pytest.raises(InvalidEmbeddingsError, match="row 1"):
            gallery.enroll(X, ["a", "b", "c"])
        assert len(gallery) == 40
        enrolled = gallery.enroll(X, ["a", "b", "c"], skip_bad=True)
        assert [bad.row for bad in enrolled.left_out] == [1]
        assert len(gallery) == 42


def test_embeddings_of_another_model_or_dimension_are_refused(filled: str, people: Any) -> None:
    with holue.open(filled) as gallery:
        with pytest.raises(InvalidEmbeddingsError, match="'m2'"):
            gallery.identify(people.probes(), model="m2")
        with pytest.raises(InvalidEmbeddingsError, match="'m2'"):
            gallery.enroll(people.samples(60, 1), ["a"], model="m2")
        with pytest.raises(InvalidEmbeddingsError):
            gallery.identify(np.ones((1, people.dim + 1)))
    with pytest.raises(InvalidParameterError, match="dim"):
        holue.open(filled, dim=3)


def test_samples_that_cancel_each_other_do_not_close_the_gallery(home: str) -> None:
    X = np.eye(4, dtype=np.float32)
    with holue.open(home, create=True, dim=4, method="galue", threshold=0.5) as gallery:
        gallery.enroll(X[:3], ["a", "b", "c"])
        gallery.add_samples(-X[:1], ["a"])
        assert gallery.identify(X[:1]).subject[0] == "a"
    with holue.open(home) as gallery:
        assert gallery.identify(X[:1]).subject[0] == "a"


def test_weights_by_concentration_need_concentrations_before_anything_is_kept(home: str, people: Any) -> None:
    with holue.open(
        home, create=True, dim=people.dim, method="galue", threshold=0.5, weighting="concentration"
    ) as gallery:
        with pytest.raises(InvalidConcentrationError, match="weighting='concentration'"):
            gallery.enroll(*people.several(range(3), 2))
        assert gallery.version == 0
        X, ids = people.several(range(3), 2)
        kappa = np.arange(1.0, 7.0)
        gallery.enroll(X, ids, concentration=kappa)
        gallery.enroll(people.samples(7, 2), ["p7"] * 2, concentration=[5.0, 1.0])
        reference = OpenSetRecognizer("galue", threshold=0.5, weighting="concentration")
        reference.fit(np.concatenate([X, people.samples(7, 2)]), [*ids, "p7", "p7"], [*kappa, 5.0, 1.0])
        ours, theirs = gallery.identify(people.probes()), reference.identify(people.probes())
        assert ours.candidate_scores.tolist() == theirs.candidate_scores.tolist()


def test_a_gallery_of_fewer_than_two_says_so_and_grows(home: str, people: Any) -> None:
    with holue.open(home, create=True, dim=people.dim, method="galue", threshold=0.5) as gallery:
        with pytest.raises(GalleryTooSmallError, match="has 0"):
            gallery.identify(people.probes())
        gallery.enroll(people.samples(0, 1), ["p0"])
        with pytest.raises(GalleryTooSmallError, match="has 1"):
            gallery.identify(people.probes())
        gallery.enroll(people.samples(1, 1), ["p1"])
        assert len(gallery.identify(people.probes())) == 30
        gallery.remove(["p0", "p1"])
        assert len(gallery) == 0
        gallery.enroll(people.samples(2, 1).repeat(2, axis=0), [7, 8])  # ids of another type, now that nobody is left
        assert len(gallery) == 2


def test_without_a_calibration_or_threshold_it_says_what_to_do(home: str, people: Any) -> None:
    with holue.open(home, create=True, dim=people.dim) as gallery:
        gallery.enroll(*people.several(range(3), 2))
        with pytest.raises(NotCalibratedError, match="calibrate"):
            gallery.identify(people.probes())


def test_a_path_without_a_gallery_is_not_created_by_accident(home: str) -> None:
    with pytest.raises(CorruptStoreError, match="does not exist"):
        holue.open(home)
    with pytest.raises(InvalidParameterError, match="dim"):
        holue.open(home, create=True)
    with pytest.raises(InvalidParameterError, match="read-only"):
        holue.open(home, create=True, dim=3, read_only=True)
    assert not Path(home).exists()


def test_a_url_without_a_gallery_says_how_to_name_one() -> None:
    with pytest.raises(InvalidParameterError, match="gallery=NAME"):
        holue.open("postgresql://localhost/faces")


def test_the_status_tells_the_calibration_and_its_doubts(filled: str) -> None:
    with holue.open(filled) as gallery:
        status = gallery.status().to_dict()
        assert (status["subjects"], status["calibration"], status["calibrated_at"]) == (40, 1, 1)
        assert status["store"]["samples"] == 120
        assert status["achieved_fpir"] <= 0.05


def test_a_calibration_that_cannot_be_read_gives_no_answers_until_the_next_one(filled: str, people: Any) -> None:
    with SqliteStore.open(filled) as store:
        store.put_artifact("calibration-1", b"not a calibration")
    with holue.open(filled) as gallery:
        for asked in (lambda: gallery.identify(people.probes()), lambda: gallery.current):
            with pytest.raises(CorruptStoreError, match="calibrate again"):
                asked()
        assert "calibration-1" in gallery.status().doubts[0]
        gallery.calibrate()
        assert len(gallery.identify(people.probes()).subject) == len(people.probes())
        assert not any("calibration-1" in doubt for doubt in gallery.status().doubts)


@pytest.mark.parametrize("kind", [int, str])
def test_one_id_is_removed_or_erased_like_a_list_of_one(home: str, people: Any, kind: type) -> None:
    X, ids = people.several(range(10, 16), 2)
    with holue.open(home, create=True, dim=people.dim) as gallery:
        gallery.enroll(X, [kind(one[1:]) for one in ids])
        one, other, another = (subject.id for subject in gallery.subjects(limit=3))
        gallery.remove(one)
        gallery.merge(another, into=other)
        assert gallery.erase(other).clean
        assert len(gallery) == 3


def test_the_audit_reads_the_store(filled: str) -> None:
    with holue.open(filled) as gallery:
        assert gallery.audit(target_fpir=0.05).n_samples == 120
