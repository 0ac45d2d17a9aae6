"""Long recordings: speech is cut out of silence, and the windows of one recording are samples of one probe."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from holue.embedding.inputs.samples import Sample, find_samples
from holue.embedding.inputs.speech import SpeechInput
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.specification import models_directory
from holue.embedding.recordings.speech_detector import FRAME, SpeechDetector
from holue.errors import InvalidFileError
from holue.gallery.pooling import pool
from holue.service.app import create_app
from holue.service.galleries.embedder import FileEmbedder
from holue.service.service import Service
from holue.service.settings import ServiceSettings

soundfile = pytest.importorskip("soundfile")
RATE = 16_000
BASE = "/v1/galleries/voices"
TONES = {"ann": 300, "bob": 700, "cay": 1500}


class Loud(SpeechDetector):
    """Takes every frame that is not silent for speech."""

    def probabilities(self, waveform: np.ndarray) -> np.ndarray:
        whole = waveform[: len(waveform) // FRAME * FRAME].reshape(-1, FRAME)
        return (np.abs(whole).max(axis=1) > 0.01).astype(np.float32)


class Tones:
    """Stands in for a speaker model: the energy of a waveform in sixteen bands."""

    fingerprint = "tones"

    specification = SimpleNamespace(name="tones", model_input=SpeechInput())

    def embed(self, samples: Sequence[Sample]) -> EmbeddingFile:
        rows = [band_energies(np.asarray(sample.read())) for sample in samples]
        names = np.array([sample.sample_id for sample in samples])
        return EmbeddingFile(np.array(rows, np.float32), None, names, names, "tones", "tones")


def band_energies(waveform: np.ndarray) -> np.ndarray:
    spectrum = np.abs(np.fft.rfft(waveform, 2 * RATE))[: 16 * 250]
    return np.sqrt((spectrum.reshape(16, 250) ** 2).sum(axis=1)) + 1e-3


def tone(name: str, seconds: float) -> np.ndarray:
    return 0.2 * np.sin(2 * np.pi * TONES[name] * np.arange(round(seconds * RATE)) / RATE)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE))


def wav(*parts: np.ndarray) -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, np.concatenate(parts), RATE, format="WAV", subtype="FLOAT")
    return stream.getvalue()


def started(folder: Path, embedder: FileEmbedder, dim: int) -> Iterator[TestClient]:
    service = Service(ServiceSettings.load(galleries=str(folder)), embedder=embedder).open()
    assert service.first_key is not None
    with TestClient(create_app(service=service), headers={"x-api-key": service.first_key.text}) as client:
        made = client.post(
            "/v1/galleries",
            json={"name": "voices", "dim": dim, "model": embedder.model, "threshold": 0.5, "method": "galue"},
        )
        assert made.status_code == 201, made.text
        yield client
    service.close()


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    limits = ServiceSettings(galleries="x").limits
    embedder = FileEmbedder(Tones(), limits, detector=Loud(tmp_path / "none.onnx"))  # type: ignore[arg-type]
    (tmp_path / "galleries").mkdir()
    yield from started(tmp_path / "galleries", embedder, 16)


def enrol(client: TestClient, subject: str, *contents: bytes) -> Any:
    sent = [("file", ("x.wav", content)) for content in contents]
    return client.post(f"{BASE}/subjects/{subject}/files", files=sent)


def identify(client: TestClient, **contents: bytes) -> Any:
    return client.post(f"{BASE}/identify", files=[(name, ("x.wav", content)) for name, content in contents.items()])


def test_the_windows_of_a_recording_are_samples_of_one_probe(client: TestClient) -> None:
    for name in TONES:
        assert enrol(client, name, wav(silence(1), tone(name, 2), silence(1))).status_code == 201
    call = wav(silence(2), tone("bob", 2), silence(2), tone("bob", 6), silence(3))
    found = identify(client, call=call, still=wav(silence(3)), short=wav(tone("cay", 2))).json()
    assert [answer["subject"] for answer in found["answers"]] == ["bob", "cay"]
    assert found["without_speech"] == ["still"]
    windows = found["answers"][0]["windows"]
    assert [window["file"] for window in windows] == ["call"] * 3
    np.testing.assert_allclose([window["start"] for window in windows], [1.9, 5.9, 9.0], atol=0.1)
    np.testing.assert_allclose([window["end"] for window in windows], [4.1, 9.0, 12.1], atol=0.1)


def test_a_long_recording_does_not_outweigh_a_short_one(client: TestClient) -> None:
    assert enrol(client, "cay", wav(tone("cay", 2))).status_code == 201
    long, short = wav(tone("ann", 16)), wav(tone("bob", 2))
    made = enrol(client, "both", long, short)
    assert made.status_code == 201, made.text
    media = [each["medium"] for each in client.get(f"{BASE}/subjects/both/samples").json()["samples"]]
    assert len(media) == 5
    assert len(set(media)) == 2
    half = band_energies(tone("ann", 2)) / np.linalg.norm(band_energies(tone("ann", 2)))
    other = band_energies(tone("bob", 2)) / np.linalg.norm(band_energies(tone("bob", 2)))
    middle = ((half + other) / np.linalg.norm(half + other)).tolist()
    [answer] = client.post(f"{BASE}/identify", json={"probes": [middle]}).json()["answers"]
    assert answer["score"] > 0.995  # of the middle; four windows against one would pull it to 0.85
    assert enrol(client, "both", long).status_code == 201
    again = [each["medium"] for each in client.get(f"{BASE}/subjects/both/samples").json()["samples"]]
    assert set(again) == set(media)


def test_a_recording_without_speech_is_a_problem(client: TestClient) -> None:
    for answer in (enrol(client, "ann", wav(silence(4))), identify(client, call=wav(silence(4)))):
        assert answer.status_code == 422
        assert answer.json()["type"].endswith("no-speech")
        assert "no speech was found" in answer.json()["detail"]
    assert client.get(f"{BASE}/subjects").json()["subjects"] == []
    cut = wav(tone("ann", 2))[:-100_001]
    assert enrol(client, "ann", cut).status_code in (201, 422)
    assert enrol(client, "bob", b"RIFF nonsense").status_code == 422


@pytest.mark.data
def test_speakers_are_known_in_recordings_with_silence_and_noise(
    real_data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Utterances of speechocean762, joined with silence and noise; a window gets the embedding that ``holue embed`` gives it."""
    import csv

    try:
        SpeechDetector.open()
    except InvalidFileError as error:
        pytest.skip(f"needs the model of the package silero-vad: {error}")
    if not (models_directory() / "campplus.onnx").is_file():
        pytest.skip("needs the model campplus.onnx; set HOLUE_MODELS to the folder that holds it")
    with open(real_data("speechocean/utterances.csv")) as file:
        adults = {row["file"]: row["speaker"] for row in csv.DictReader(file) if int(row["age"]) >= 18}
    people = sorted(set(adults.values()))[:6]  # children of one age sound alike
    by_speaker: dict[str, list[np.ndarray]] = {}
    for sample in find_samples([real_data("speechocean/utterances.zip")], SpeechInput()):
        if adults.get(sample.sample_id) in people:
            waveform = SpeechInput().decode(bytes(sample.read()), sample.origin)
            by_speaker.setdefault(adults[sample.sample_id], []).append(waveform)
    rng = np.random.default_rng(0)

    def joined(utterances: list[np.ndarray]) -> bytes:
        parts = [part for one in utterances for part in (silence(2), one / np.abs(one).max() * 0.5)]
        whole = np.concatenate([*parts, silence(2)])
        return wav(whole + 0.002 * rng.standard_normal(len(whole)))

    settings = ServiceSettings.load(galleries=str(tmp_path), embedder={"model": "campplus", "detect": "silero"})
    assert settings.embedder is not None
    embedder = FileEmbedder.open(settings.embedder, settings.limits)
    (tmp_path / "galleries").mkdir()
    for client in started(tmp_path / "galleries", embedder, 192):
        for name, utterances in by_speaker.items():
            assert enrol(client, name, joined(utterances[:3])).status_code == 201
        sent = {name: joined(utterances[3:6]) for name, utterances in by_speaker.items()}
        answers = identify(client, **sent).json()["answers"]
        best = [answer["candidates"][0]["subject"] for answer in answers]
        assert sum(one == other for one, other in zip(best, by_speaker)) >= len(by_speaker) - 1
        assert all(1 <= len(answer["windows"]) <= 8 for answer in answers)
        first = next(iter(sent.values()))
        rows = embedder.embed([_file(first)]).rows
        _, probe = pool(rows, np.zeros(len(rows), int))
        [alone] = client.post(f"{BASE}/identify", json={"probes": probe.directions.tolist()}).json()["answers"]
        assert alone["score"] == pytest.approx(answers[0]["score"], abs=1e-5)


def _file(content: bytes) -> Any:
    from holue.service.galleries.embedder import SentFile

    return SentFile("call", content)
