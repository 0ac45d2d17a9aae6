from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.samples import array_samples, digest, find_samples
from holue.embedding.inputs.speech import SpeechInput
from holue.errors import InvalidFileError, InvalidInputError, InvalidSubjectsError

IMAGES = ImageInput(4, 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("ann/1.jpg", "ann/2.PNG", "bob/1.jpg", "top.jpg", "ann/notes.txt", ".hidden/1.jpg"):
        path = tmp_path / "faces" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "faces"


def test_a_folder_and_its_zip_hold_the_same_samples(folder: Path) -> None:
    archive = folder.with_name("faces.zip")
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in sorted(folder.rglob("*")):
            zipped.write(path, path.relative_to(folder))
    for source in (folder, archive):
        samples = find_samples([source], IMAGES)
        found = {sample.sample_id: (sample.subject_id, sample.load()) for sample in samples}
        assert found == {
            "ann/1.jpg": ("ann", b"ann/1.jpg"),
            "ann/2.PNG": ("ann", b"ann/2.PNG"),
            "bob/1.jpg": ("bob", b"bob/1.jpg"),
            "top.jpg": ("", b"top.jpg"),
        }
    assert samples[0].origin == f"{archive}: ann/1.jpg"


def test_a_list_names_files_relative_to_itself(folder: Path) -> None:
    listing = folder / "probes.txt"
    listing.write_text("# probes\nbob/1.jpg\n\nann/notes.txt\n")
    samples = find_samples([listing], IMAGES)
    assert [(sample.sample_id, sample.subject_id) for sample in samples] == [
        ("bob/1.jpg", "bob"),
        ("ann/notes.txt", "ann"),
    ]
    listing.write_text("bob/1.jpg\nbob/9.jpg\n")
    with pytest.raises(InvalidFileError, match=r"probes.txt, line 2: no such file: bob/9.jpg"):
        find_samples([listing], IMAGES)


def test_files_may_be_named_one_by_one(folder: Path) -> None:
    samples = find_samples([folder / "ann/1.jpg", folder / "bob/1.jpg"], IMAGES)
    assert [sample.subject_id for sample in samples] == ["ann", "bob"]


def test_an_input_of_the_wrong_kind_says_what_it_holds(folder: Path) -> None:
    with pytest.raises(InvalidFileError, match=r"no file for this speech model.*3 × .jpg"):
        find_samples([folder], SpeechInput())
    with pytest.raises(InvalidFileError, match="no such file or folder"):
        find_samples([folder / "carol"], IMAGES)
    with pytest.raises(InvalidFileError, match="no input"):
        find_samples([], IMAGES)


def test_a_sample_id_that_occurs_twice_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'1.jpg' occurs twice: .*ann/1.jpg and .*bob/1.jpg"):
        find_samples([folder / "ann", folder / "bob"], IMAGES)


def test_a_damaged_zip_member_is_named(folder: Path, png: Callable[[np.ndarray], bytes]) -> None:
    archive = folder.with_name("faces.zip")
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("ann/1.jpg", b"x" * 100)
    archive.write_bytes(archive.read_bytes().replace(b"x" * 100, b"y" * 100))
    with pytest.raises(InvalidFileError, match=r"faces.zip: ann/1.jpg: the member cannot be read"):
        find_samples([archive], IMAGES)[0].load()


def test_arrays_carry_the_names_they_are_given() -> None:
    arrays = [np.zeros((4, 4, 3), np.uint8)] * 2
    samples = array_samples(arrays, sample_id=["a", "b"], subject_id=["x", "y"])
    assert [(sample.sample_id, sample.subject_id) for sample in samples] == [("a", "x"), ("b", "y")]
    with pytest.raises(InvalidSubjectsError, match="each of 2 arrays"):
        array_samples(arrays, subject_id=["x"])


def test_the_digest_sees_shape_and_type_as_well_as_bytes() -> None:
    flat = np.zeros(12, np.uint8)
    distinct = {digest(flat), digest(flat.reshape(3, 4)), digest(flat.view(np.int8)), digest(flat.tobytes())}
    assert len(distinct) == 4
