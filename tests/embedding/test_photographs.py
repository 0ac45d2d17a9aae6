from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holue.embedding.embed import embed_to_file
from holue.embedding.faces.alignment import TEMPLATE
from holue.embedding.faces.choice import chosen
from holue.embedding.faces.detector import FaceDetector
from holue.embedding.faces.face import Face
from holue.embedding.faces.opencv import opencv
from holue.embedding.faces.photographs import embed_photographs, find_faces
from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.samples import array_samples, find_samples
from holue.embedding.inputs.speech import SpeechInput
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.specification import ModelSpecification
from holue.errors import InvalidFileError, InvalidInputError, InvalidParameterError, MissingDependencyError

cv2 = pytest.importorskip("cv2")


def face_at(x: float, y: float, edge: float) -> Face:
    return Face(np.array([x, y, edge, edge]), TEMPLATE * (edge / 112) + [x, y], 0.9)


THREE = [face_at(10, 60, 40), face_at(70, 50, 60), face_at(150, 10, 80)]


class ThreeFaces(FaceDetector):
    """Finds as many of three faces as the first pixel says."""

    def find(self, pixels: np.ndarray) -> list[Face]:
        return THREE[: int(pixels[0, 0, 0])]


@pytest.fixture
def detector(tmp_path: Path) -> FaceDetector:
    return ThreeFaces(tmp_path / "none.onnx")


@pytest.fixture
def embedder(image_model: Callable[..., Path]) -> OnnxEmbedder:
    return OnnxEmbedder(ModelSpecification(image_model(), ImageInput(4, 4)), chunk_size=2)


def photographs(*counts: int) -> list[np.ndarray]:
    made = np.random.default_rng(0).integers(0, 256, (len(counts), 150, 240, 3), dtype=np.uint8)
    made[:, 0, 0] = np.array(counts)[:, None]
    return list(made)


@pytest.mark.parametrize(
    ("which", "place"), [("largest", [2]), ("central", [1]), (1, [0]), ("3", [2]), ("all", [0, 1, 2])]
)
def test_the_wanted_face_is_taken(which: str | int, place: list[int], detector: FaceDetector) -> None:
    found = find_faces(photographs(3)[0], detector, which=which)
    assert [face.face for face in found] == [THREE[p] for p in place]


def test_a_photograph_for_enrolment_must_hold_one_face_or_say_which(detector: FaceDetector) -> None:
    several, one = photographs(3, 1)
    with pytest.raises(
        InvalidInputError,
        match=r"ann.jpg: 3 faces \(1: 40×40 pixels at \(10, 60\).*; 2: .*\).*which='largest', which='central' or which=1",
    ):
        find_faces(several, detector, which="one", origin="ann.jpg")
    assert len(find_faces(one, detector, which="one")) == 1
    with pytest.raises(InvalidInputError, match=r"ann.jpg: face 4 was asked for, the photograph holds 3"):
        find_faces(several, detector, which=4, origin="ann.jpg")
    for wrong in ("biggest", 0, -1, "1.5"):
        with pytest.raises(InvalidParameterError, match=r"which must be one, largest, central, all or the number"):
            find_faces(several, detector, which=wrong)


def test_of_equal_faces_the_first_from_the_left_is_taken() -> None:
    twins = [face_at(10, 10, 40), face_at(60, 10, 40)]
    assert chosen(twins, "largest", (60, 110), "a.jpg") == [0]
    assert chosen(twins, "central", (60, 110), "a.jpg") == [0]


def test_several_people_in_a_photograph_are_several_probes(embedder: OnnxEmbedder, detector: FaceDetector) -> None:
    samples = array_samples(
        photographs(1, 3, 0, 2), sample_id=["a", "b", "c", "d"], subject_id=["ann", "bob", "", "dan"]
    )
    file = embed_photographs(embedder, detector, samples, which="all")
    assert list(file.sample_id) == ["a#1", "b#1", "b#2", "b#3", "d#1", "d#2"]
    assert list(file.columns["media_id"]) == ["a", "b", "b", "b", "d", "d"]
    assert set(file.subject_id) == {""}
    assert file.skipped == ("c",)
    np.testing.assert_array_equal(file.columns["box"], [face.box for face in (THREE[0], *THREE, *THREE[:2])])
    assert all(len(column) == 6 for column in file.columns.values())


def test_a_photograph_keeps_its_name_and_subject_where_one_face_is_meant(
    embedder: OnnxEmbedder, detector: FaceDetector
) -> None:
    samples = array_samples(photographs(3, 1, 2), sample_id=["a", "b", "c"], subject_id=["ann", "bob", "ann"])
    file = embed_photographs(embedder, detector, samples, which="largest")
    assert list(file.sample_id) == list(file.columns["media_id"]) == ["a", "b", "c"]
    assert list(file.subject_id) == ["ann", "bob", "ann"]


def test_photographs_give_the_embeddings_of_their_crops(embedder: OnnxEmbedder, detector: FaceDetector) -> None:
    given = photographs(1, 2, 3)
    file = embed_photographs(embedder, detector, array_samples(given), which="largest")
    crops = [find_faces(photograph, detector, which="largest", size=4)[0].crop for photograph in given]
    np.testing.assert_array_equal(file.embeddings, embedder.embed_arrays(crops).embeddings)
    assert file.fingerprint == embedder.fingerprint  # comparable with crops that others aligned


def test_columns_are_saved_and_taken_with_their_rows(
    embedder: OnnxEmbedder, detector: FaceDetector, tmp_path: Path
) -> None:
    file = embed_photographs(embedder, detector, array_samples(photographs(3, 0, 1)), which="all")
    file.save(tmp_path / "faces.npz")
    loaded = EmbeddingFile.load(tmp_path / "faces.npz")
    assert loaded.columns.keys() == file.columns.keys()
    assert loaded.skipped == ("1",)
    last = loaded.take(np.array([3]))
    assert list(last.columns["media_id"]) == ["2"]
    np.testing.assert_array_equal(last.columns["box"], [THREE[0].box])


def test_photographs_without_any_face_are_an_error(embedder: OnnxEmbedder, detector: FaceDetector) -> None:
    with pytest.raises(InvalidInputError, match=r"no face was found in 2 photographs, such as sample 0"):
        embed_photographs(embedder, detector, array_samples(photographs(0, 0)))


def test_a_detector_needs_a_model_of_square_images(
    embedder: OnnxEmbedder, speech_model: Path, detector: FaceDetector, tmp_path: Path
) -> None:
    speech = OnnxEmbedder(ModelSpecification(speech_model, SpeechInput()))
    wide = replace(embedder, specification=replace(embedder.specification, model_input=ImageInput(4, 8)))
    for wrong in (speech, wide):
        with pytest.raises(InvalidParameterError, match="square images aligned to the ArcFace template"):
            embed_photographs(wrong, detector, array_samples(photographs(1)))
    with pytest.raises(InvalidParameterError, match="which='all' chooses among the faces that a detector finds"):
        embed_to_file("arcface", [tmp_path], tmp_path / "x.npz", which="all")


def test_a_file_that_is_no_detector_is_refused(tmp_path: Path, image_model: Callable[..., Path]) -> None:
    with pytest.raises(InvalidFileError, match=r"none.onnx: no such face detector; name the ONNX file of YuNet"):
        FaceDetector.open(tmp_path / "none.onnx")
    (tmp_path / "junk.onnx").write_bytes(b"junk")
    with pytest.raises(InvalidFileError, match=r"junk.onnx: not a YuNet face detector"):
        FaceDetector.open(tmp_path / "junk.onnx")
    with pytest.raises(InvalidParameterError, match="least_score must lie between 0 and 1, got 2"):
        FaceDetector.open(least_score=2)
    with pytest.raises(InvalidFileError, match=r"tiny.onnx: not a YuNet face detector"):
        FaceDetector.open(image_model())


def test_without_opencv_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "yunet.onnx").write_bytes(b"not read")
    monkeypatch.setitem(sys.modules, "cv2", None)
    opencv.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"opencv-python-headless is not installed; run: pip"):
        FaceDetector.open(tmp_path / "yunet.onnx")


def test_a_damaged_photograph_is_named(embedder: OnnxEmbedder, detector: FaceDetector, tmp_path: Path) -> None:
    (tmp_path / "ann.jpg").write_bytes(b"no image")
    samples = find_samples([tmp_path / "ann.jpg"], embedder.specification.model_input)
    with pytest.raises(InvalidFileError, match=r"ann.jpg: not a readable image"):
        embed_photographs(embedder, detector, samples)


def test_pixels_must_be_rgb_bytes(detector: FaceDetector) -> None:
    for wrong in (np.zeros((9, 9)), np.zeros((9, 9, 3)), np.zeros((0, 9, 3), np.uint8)):
        with pytest.raises(InvalidInputError, match=r"a photograph must be RGB bytes"):
            find_faces(wrong, detector)


@pytest.fixture
def yunet(real_models: Path) -> FaceDetector:
    return FaceDetector.open(real_models / "yunet.onnx")


def stored_sideways(content: bytes) -> bytes:
    from PIL import Image

    image, stream = Image.open(io.BytesIO(content)), io.BytesIO()
    turned = image.transpose(Image.Transpose.ROTATE_90)
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(stream, "PNG", exif=exif)
    return stream.getvalue()


@pytest.mark.data
def test_faces_of_whole_photographs_agree_with_their_crops(
    yunet: FaceDetector, real_data: Path, tmp_path: Path
) -> None:
    originals = real_data / "lfw" / "originals.zip"
    before = originals.stat().st_mtime_ns
    embedder = OnnxEmbedder.open("arcface")
    samples = find_samples([originals], embedder.specification.model_input)[::60]
    file = embed_photographs(embedder, yunet, samples, which="central")
    reference = EmbeddingFile.load(real_data / "lfw" / "arcface_mbf.npz")
    place = {name: row for row, name in enumerate(reference.sample_id)}
    same = reference.directions[[place[name] for name in file.sample_id]]
    assert file.skipped == ()
    assert np.median((file.directions * same).sum(axis=1)) > 0.97
    assert (file.columns["measure_score"] > 0.8).all()
    assert originals.stat().st_mtime_ns == before


@pytest.mark.data
def test_a_photograph_stored_sideways_gives_the_same_face(yunet: FaceDetector, real_data: Path) -> None:
    with zipfile.ZipFile(real_data / "lfw" / "originals.zip") as archive:
        content = archive.read(archive.namelist()[0])
    upright, sideways = (find_faces(given, yunet, which="central") for given in (content, stored_sideways(content)))
    np.testing.assert_array_equal(upright[0].crop, sideways[0].crop)


@pytest.mark.data
def test_faces_are_found_in_small_and_in_large_photographs(yunet: FaceDetector, real_data: Path) -> None:
    image_input = ImageInput(112, 112)
    samples = find_samples([real_data / "lfw" / "originals.zip"], image_input)[:12]
    pictures = [image_input.decode(sample.read(), sample.origin) for sample in samples]
    group = np.concatenate([np.concatenate(pictures[row : row + 4], axis=1) for row in (0, 4, 8)])
    found = {tuple((face.centre // 250).astype(int)) for face in yunet.find(group)}
    assert found == {(x, y) for x in range(4) for y in range(3)}
    portrait = cv2.resize(pictures[0], (2500, 2500))
    large, small = yunet.find(portrait), yunet.find(pictures[0])
    assert len(large) == len(small) == 1
    np.testing.assert_allclose(
        large[0].centre / 10, small[0].centre, atol=5
    )  # at another size the box moves by some pixels


@pytest.mark.data
@pytest.mark.parametrize("shape", [(1, 1), (3, 900), (40, 40), (1500, 1000)])
def test_nothing_is_found_where_there_is_no_face(yunet: FaceDetector, shape: tuple[int, int]) -> None:
    assert yunet.find(np.full((*shape, 3), 90, np.uint8)) == []


@pytest.mark.data
def test_threads_may_share_a_detector(yunet: FaceDetector, real_data: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    image_input = ImageInput(112, 112)
    samples = find_samples([real_data / "lfw" / "originals.zip"], image_input)[:8]
    pictures = [image_input.decode(sample.read(), sample.origin) for sample in samples]
    # sizes differ, which is what a shared network would mix up
    pictures += [np.ascontiguousarray(picture[:200, :230]) for picture in pictures]
    alone = [[str(face) for face in yunet.find(picture)] for picture in pictures]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda picture: [str(face) for face in yunet.find(picture)], pictures))
    assert together == alone
