from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holue.embedding.embed import embed_to_file
from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.samples import find_samples
from holue.embedding.inputs.speech import SpeechInput
from holue.embedding.models.chunk_cache import ChunkCache
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.specification import ModelSpecification, preset
from holue.errors import InvalidEmbeddingsError, InvalidFileError, InvalidInputError, InvalidParameterError

RNG = np.random.default_rng(1)
IMAGES = list(RNG.integers(0, 256, (11, 4, 4, 3), dtype=np.uint8))


@pytest.fixture
def embedder(image_model: Callable[..., Path]) -> OnnxEmbedder:
    return OnnxEmbedder(ModelSpecification(image_model(), ImageInput(4, 4)), batch_size=3, chunk_size=4)


@pytest.fixture
def faces(tmp_path: Path, png: Callable[[np.ndarray], bytes]) -> Path:
    path = tmp_path / "faces.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number, image in enumerate(IMAGES):
            archive.writestr(f"subject{number % 3}/{number}.png", png(image))
    return path


def test_embeddings_are_the_models_outputs_in_the_order_of_the_samples(embedder: OnnxEmbedder) -> None:
    file = embedder.embed_arrays(IMAGES)
    weights = np.random.default_rng(7).standard_normal((48, 5)).astype(np.float32)
    features = ((np.stack(IMAGES).astype(np.float64) - 127.5) / 127.5).transpose(0, 3, 1, 2).reshape(11, 48)
    assert file.features is not None
    np.testing.assert_allclose(file.features, features, rtol=1e-6)  # one float32 rounding
    np.testing.assert_allclose(file.embeddings, features @ weights, rtol=1e-4, atol=1e-5)  # 48 float32 terms


def test_files_and_arrays_agree_whatever_the_batches(embedder: OnnxEmbedder, faces: Path) -> None:
    from_arrays, from_zip = embedder.embed_arrays(IMAGES), embedder.embed_files([faces])
    np.testing.assert_array_equal(from_arrays.embeddings, from_zip.embeddings)
    in_one = replace(embedder, batch_size=32, chunk_size=100).embed_files([faces])
    np.testing.assert_allclose(in_one.embeddings, from_zip.embeddings, rtol=1e-5, atol=1e-5)  # order of sums
    assert list(from_zip.subject_id[:4]) == ["subject0", "subject1", "subject2", "subject0"]


def test_a_model_with_a_fixed_batch_is_filled_up(image_model: Callable[..., Path]) -> None:
    specification = ModelSpecification(image_model(batch=4), ImageInput(4, 4))
    file = OnnxEmbedder(specification).embed_arrays(IMAGES)
    free = OnnxEmbedder(replace(specification, path=image_model())).embed_arrays(IMAGES)
    np.testing.assert_allclose(file.embeddings, free.embeddings, rtol=1e-5, atol=1e-5)  # order of sums


def test_utterances_of_different_length_keep_their_own_embeddings(speech_model: Path) -> None:
    waveforms = [0.1 * RNG.standard_normal(n).astype(np.float32) for n in (8000, 5000, 8000, 6000, 5000)]
    embedder = OnnxEmbedder(ModelSpecification(speech_model, SpeechInput()), batch_size=2)
    together = embedder.embed_arrays(waveforms).embeddings
    alone = [embedder.embed_arrays([waveform]).embeddings[0] for waveform in waveforms]
    np.testing.assert_array_equal(together, alone)


def test_progress_reaches_the_total(embedder: OnnxEmbedder) -> None:
    seen: list[tuple[int, int]] = []
    embedder.embed_arrays(IMAGES, progress=lambda done, total, note="": seen.append((done, total)))
    assert seen == [(4, 11), (8, 11), (11, 11)]


def test_interrupted_work_resumes_where_it_stopped(embedder: OnnxEmbedder, tmp_path: Path) -> None:
    class StopHereError(Exception):
        pass

    def stop(done: int, total: int, note: str = "") -> None:
        if done >= 8:
            raise StopHereError

    cached = replace(embedder, cache=ChunkCache(tmp_path / "cache"))
    with pytest.raises(StopHereError):
        cached.embed_arrays(IMAGES, progress=stop)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npz")}
    assert len(before) == 2
    file = cached.embed_arrays(IMAGES)
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npz")}
    assert len(after) == 3
    assert before.items() <= after.items()
    np.testing.assert_array_equal(file.embeddings, embedder.embed_arrays(IMAGES).embeddings)


def test_the_cache_is_keyed_by_content_and_model(embedder: OnnxEmbedder, tmp_path: Path) -> None:
    cached = replace(embedder, cache=ChunkCache(tmp_path / "cache"))
    cached.embed_arrays(IMAGES[:4])
    changed = [*IMAGES[:3], 255 - IMAGES[3]]
    assert not np.array_equal(cached.embed_arrays(changed).embeddings, cached.embed_arrays(IMAGES[:4]).embeddings)
    other = replace(cached, specification=replace(embedder.specification, model_input=ImageInput(4, 4, "bgr")))
    assert not np.array_equal(other.embed_arrays(IMAGES[:4]).embeddings, cached.embed_arrays(IMAGES[:4]).embeddings)


def test_a_damaged_chunk_is_computed_again(embedder: OnnxEmbedder, tmp_path: Path) -> None:
    cached = replace(embedder, cache=ChunkCache(tmp_path / "cache"))
    first = cached.embed_arrays(IMAGES)
    for path in (tmp_path / "cache").rglob("*.npz"):
        path.write_bytes(path.read_bytes()[:100])
    np.testing.assert_array_equal(cached.embed_arrays(IMAGES).embeddings, first.embeddings)


def test_the_command_writes_a_file_that_loads(embedder: OnnxEmbedder, faces: Path, tmp_path: Path) -> None:
    toml = embedder.specification.path.with_suffix(".toml")
    toml.write_text(embedder.specification.to_toml())
    written = embed_to_file(toml, [faces], tmp_path / "out" / "x.npz", cache_dir=tmp_path / "cache")
    loaded = EmbeddingFile.load(tmp_path / "out" / "x.npz")
    np.testing.assert_array_equal(loaded.embeddings, written.embeddings)
    assert (loaded.fingerprint, loaded.model) == (embedder.fingerprint, "tiny")
    bare = embed_to_file(toml, [faces], tmp_path / "y.npz", features=False, cache_dir=tmp_path / "cache")
    assert bare.features is None
    assert bare.fingerprint == loaded.fingerprint
    with pytest.raises(InvalidParameterError, match=r"must end in \.npz"):
        embed_to_file(toml, [faces], tmp_path / "x.pkl")


def test_an_unreadable_member_stops_the_work_and_is_named(embedder: OnnxEmbedder, faces: Path) -> None:
    with zipfile.ZipFile(faces, "a") as archive:
        archive.writestr("subject9/broken.jpg", b"no image")
    with pytest.raises(InvalidFileError, match=r"faces.zip: subject9/broken.jpg: not a readable image"):
        embedder.embed_files([faces])


def test_a_file_that_vanished_is_named(
    embedder: OnnxEmbedder, tmp_path: Path, png: Callable[[np.ndarray], bytes]
) -> None:
    (tmp_path / "1.png").write_bytes(png(IMAGES[0]))
    samples = find_samples([tmp_path / "1.png"], embedder.specification.model_input)
    (tmp_path / "1.png").unlink()
    with pytest.raises(InvalidFileError, match=r"1.png: cannot be read"):
        embedder.embed(samples)


def test_a_model_for_other_input_is_refused(image_model: Callable[..., Path], speech_model: Path) -> None:
    for path, model_input, said in (
        (image_model(), ImageInput(8, 8), r"'image' takes .*\(batch, 3, 4, 4\).*\(batch, 3, 8, 8\)"),
        (image_model(), ImageInput(4, 4, "grey"), r"\(batch, 1, 4, 4\)"),
        (image_model(), SpeechInput(name="image"), r"\(batch, 3, 4, 4\).*speech.*\(batch, any, 80\)"),
        (speech_model, SpeechInput(mel_bins=40), r"\(batch, frames, 80\).*\(batch, any, 40\)"),
        (image_model(), ImageInput(4, 4, name="data"), r"the one input 'data', it has image"),
    ):
        with pytest.raises(InvalidFileError, match=said):
            OnnxEmbedder(ModelSpecification(path, model_input)).embed_arrays(IMAGES[:1])


def test_missing_outputs_are_named_beside_those_there_are(image_model: Callable[..., Path]) -> None:
    specification = ModelSpecification(image_model(features=False), ImageInput(4, 4))
    with pytest.raises(InvalidFileError, match=r"'features' for the bottleneck features; it has embedding;"):
        OnnxEmbedder(specification).embed_arrays(IMAGES[:1])
    assert OnnxEmbedder(specification.without_features()).embed_arrays(IMAGES[:1]).features is None
    with pytest.raises(InvalidFileError, match="'vector' for the embedding; it has embedding"):
        OnnxEmbedder(replace(specification, embedding="vector")).embed_arrays(IMAGES[:1])


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_bytes(b"not a model")
    with pytest.raises(InvalidFileError, match=r"x.onnx: not a usable ONNX model"):
        OnnxEmbedder(ModelSpecification(tmp_path / "x.onnx", ImageInput(4, 4))).embed_arrays(IMAGES[:1])


def test_an_embedding_that_is_not_finite_names_its_sample(image_model: Callable[..., Path]) -> None:
    # 255 / 1e-38 leaves float32; a zero pixel stays zero
    loud = ModelSpecification(image_model(), ImageInput(4, 4, mean=0.0, scale=1e-38))
    with (
        pytest.raises(InvalidEmbeddingsError, match=r"sample 1: .* not finite"),
        np.errstate(over="ignore"),
    ):
        OnnxEmbedder(loud).embed_arrays([np.zeros((4, 4, 3), np.uint8), IMAGES[0]])


def test_settings_outside_their_range_are_refused(embedder: OnnxEmbedder) -> None:
    with pytest.raises(InvalidParameterError, match="threads must be at least 1, got 0"):
        OnnxEmbedder.open("arcface", threads=0)
    with pytest.raises(InvalidEmbeddingsError, match="no sample"):
        embedder.embed_arrays([])
    with pytest.raises(InvalidInputError, match="sample 0"):
        embedder.embed_arrays([IMAGES[0][:3]])


@pytest.mark.data
def test_faces_agree_with_the_embeddings_that_came_with_them(real_data: Path, real_models: Path) -> None:
    reference = EmbeddingFile.load(real_data / "lfw" / "arcface_mbf.npz")
    embedder = OnnxEmbedder(preset("arcface"))
    samples = find_samples([real_data / "lfw" / "aligned112.zip"], embedder.specification.model_input)[:300:30]
    file = embedder.embed(samples)
    rows = np.flatnonzero(np.isin(reference.sample_id, file.sample_id))
    assert list(reference.sample_id[rows]) == list(file.sample_id)
    assert list(reference.subject_id[rows]) == list(file.subject_id)
    # the reference is float16: relative rounding 2^-11
    np.testing.assert_allclose(file.norms, reference.norms[rows], rtol=5e-4)
    cosine = np.sum(file.directions * reference.directions[rows], axis=1)
    assert cosine.min() > 1 - 1e-6
    assert file.features is not None
    assert file.features.shape == (10, 3136)


@pytest.mark.data
def test_utterances_of_one_speaker_are_closer_than_those_of_two(real_data: Path, real_models: Path) -> None:
    embedder = OnnxEmbedder(preset("campplus"))
    samples = find_samples([real_data / "speechocean" / "utterances.zip"], embedder.specification.model_input)
    file = embedder.embed([samples[0], samples[1], samples[-1]])
    cosine = file.directions @ file.directions.T
    assert file.subject_id[0] == file.subject_id[1] != file.subject_id[2]
    assert cosine[0, 1] > cosine[0, 2]
    assert file.features is not None
    assert (file.embeddings.shape, file.features.shape) == ((3, 192), (3, 1024))
