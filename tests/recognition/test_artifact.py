import hashlib
import json
import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue import OpenSetRecognizer
from holue.artifact.artifact import FORMAT_VERSION, content_digest
from holue.errors import ArtifactError, CorruptArtifactError, NewerArtifactError, UnsafeArtifactError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    OpenSetRecognizer(method="galue", threshold=0.5).fit(np.eye(4), list("abcd")).save(tmp_path / "saved")
    return tmp_path / "saved"


def edit(manifest: Path, **changes: object) -> None:
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, **changes}))


def sign(manifest: Path) -> None:
    """Give an edited manifest the checksum of what it now says."""
    content = json.loads(manifest.read_text())
    content.pop("digest")
    manifest.write_text(json.dumps({**content, "digest": content_digest(content)}))


def test_saving_through_a_link_fills_the_directory_it_names(saved: Path) -> None:
    link = saved.parent / "link"
    link.symlink_to(saved)
    OpenSetRecognizer(method="galue", threshold=0.5).fit(np.eye(3), [1, 2, 3]).save(link)
    assert link.is_symlink()
    assert len(OpenSetRecognizer.load(saved).gallery_) == 3
    assert {p.name for p in saved.parent.iterdir()} == {"saved", "link"}


def test_numpy_numbers_as_settings_are_saved_as_numbers(tmp_path: Path) -> None:
    given = OpenSetRecognizer("galue", threshold=np.float32(0.5), temperature=np.float32(20), random_state=np.int64(3))
    given.fit(np.eye(3), [1, 2, 3]).save(tmp_path / "saved")
    assert OpenSetRecognizer.load(tmp_path / "saved").random_state == 3


def test_it_is_a_manifest_and_plain_arrays(saved: Path) -> None:
    names = {p.name for p in saved.iterdir()}
    assert names == {"manifest.json", "subjects.npy", "directions.npy"}
    assert [p.name for p in saved.parent.iterdir()] == ["saved"]
    loaded = OpenSetRecognizer.load(saved)
    assert loaded.predict(np.eye(4)).tolist() == list("abcd")


def test_saving_again_replaces_the_whole(saved: Path) -> None:
    OpenSetRecognizer(method="galue", threshold=0.5).fit(np.eye(3), [1, 2, 3], concentration=9.0).save(saved)
    assert len(OpenSetRecognizer.load(saved).gallery_) == 3
    assert [p.name for p in saved.parent.iterdir()] == ["saved"]


def test_a_failed_save_leaves_the_old_one_and_no_litter(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("holue.artifact.artifact.write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        OpenSetRecognizer(method="galue", threshold=0.5).fit(np.eye(3), [1, 2, 3]).save(saved)
    assert len(OpenSetRecognizer.load(saved).gallery_) == 4
    assert [p.name for p in saved.parent.iterdir()] == ["saved"]


def test_somebody_elses_directory_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ArtifactError, match="is not a saved recognizer"):
        OpenSetRecognizer(method="galue").fit(np.eye(3), [1, 2, 3]).save(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_corruption_is_named(saved: Path) -> None:
    path = saved / "directions.npy"
    whole = path.read_bytes()
    path.write_bytes(whole[:-8] + b"\0" * 8)
    with pytest.raises(CorruptArtifactError, match=r"directions.npy has changed"):
        OpenSetRecognizer.load(saved)
    path.write_bytes(whole[:50])
    with pytest.raises(CorruptArtifactError, match=r"directions.npy has changed"):
        OpenSetRecognizer.load(saved)
    path.unlink()
    with pytest.raises(CorruptArtifactError, match=r"directions.npy is missing"):
        OpenSetRecognizer.load(saved)
    path.write_bytes(whole)
    (saved / "extra.npy").write_bytes(whole)
    with pytest.raises(CorruptArtifactError, match=r"extra.npy was not written"):
        OpenSetRecognizer.load(saved)


def test_a_bad_manifest_is_named(saved: Path) -> None:
    manifest = saved / "manifest.json"
    original = manifest.read_text()
    for text in (
        "{",
        "[]",
        "{}",
        original.replace('"recognizer"', '"gallery"'),
        original.replace('"version": 1', '"version": "x"'),
    ):
        manifest.write_text(text)
        with pytest.raises(CorruptArtifactError, match=r"manifest.json"):
            OpenSetRecognizer.load(saved)
    manifest.write_text(original)
    edit(manifest, content={})
    with pytest.raises(CorruptArtifactError, match="checksum differs"):
        OpenSetRecognizer.load(saved)
    sign(manifest)
    with pytest.raises(CorruptArtifactError, match="does not describe a recogniser"):
        OpenSetRecognizer.load(saved)
    manifest.write_text(original.replace('"threshold": 0.5', '"threshold": 0.6'))
    with pytest.raises(CorruptArtifactError, match="checksum differs"):
        OpenSetRecognizer.load(saved)
    manifest.unlink()
    with pytest.raises(CorruptArtifactError, match=r"manifest.json is missing"):
        OpenSetRecognizer.load(saved)
    with pytest.raises(CorruptArtifactError, match="not a directory"):
        OpenSetRecognizer.load(saved / "nowhere")


def test_a_newer_version_is_refused(saved: Path) -> None:
    edit(saved / "manifest.json", version=FORMAT_VERSION + 1)
    with pytest.raises(NewerArtifactError, match="upgrade holue"):
        OpenSetRecognizer.load(saved)


def test_pickles_are_never_loaded(saved: Path) -> None:
    (saved / "model.pkl").write_bytes(pickle.dumps([1]))
    with pytest.raises(UnsafeArtifactError, match=r"holds a pickle \(model.pkl\)"):
        OpenSetRecognizer.load(saved)
    (saved / "model.pkl").unlink()
    path = saved / "subjects.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    content = json.loads((saved / "manifest.json").read_text())
    content["files"]["subjects.npy"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (saved / "manifest.json").write_text(json.dumps(content))
    sign(saved / "manifest.json")
    with pytest.raises(UnsafeArtifactError, match=r"subjects.npy is not a plain array"):
        OpenSetRecognizer.load(saved)


@pytest.mark.filterwarnings("ignore::holue.recognition.calibration.doubts.CalibrationWarning")
@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["enrol", "replace", "remove", "return"]), max_size=10), st.integers(0, 2**32 - 1))
def test_however_subjects_came_and_went_a_saved_recogniser_answers_the_same(changes: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    known = rng.normal(size=(6, 5))  # few, so that scores tie
    recognizer = OpenSetRecognizer("galue", threshold=0.5).fit(known, list("abcdef"))
    for number, change in enumerate(changes):
        enrolled, x = recognizer.gallery_.subjects, known[rng.integers(6)][None]
        one = str(rng.choice(enrolled))
        if change == "enrol":
            recognizer.enroll(x, [f"new{number}"])
        elif change == "replace":
            recognizer.enroll(x, [one], replace=True)
        elif change == "remove" and len(enrolled) > 3:
            recognizer.remove(one)
        elif change == "return" and (gone := set("abcdef") - set(enrolled.tolist())):
            recognizer.enroll(x, [min(gone)])
    with TemporaryDirectory() as place:
        recognizer.save(f"{place}/r")
        loaded = OpenSetRecognizer.load(f"{place}/r")
    before, after = recognizer.gallery_, loaded.gallery_
    np.testing.assert_array_equal(before.numbers, after.numbers)
    np.testing.assert_array_equal(before.subjects, after.subjects)
    assert (before.next_number, before.version) == (after.next_number, after.version)
    probes = np.concatenate([known, rng.normal(size=(5, 5))])
    one, other = (each.identify(probes, top_k=3) for each in (recognizer, loaded))
    for field in ("subject", "decision", "score", "candidate_subjects", "candidate_scores"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))
    np.testing.assert_allclose(one.p_unknown, other.p_unknown, rtol=1e-9)
