"""How the service runs: settings, logs, metrics, health, files where an embedder is configured, and the demo."""

from __future__ import annotations

import io
import json
import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from holue.errors import CorruptStoreError, HolueError, InvalidFileError, InvalidParameterError
from holue.live.opening import open as open_gallery
from holue.service.app import create_app
from holue.service.demo import glyph_files, make_demo_gallery
from holue.service.http.logs import JsonFormatter
from holue.service.http.problems import STATUS
from holue.service.service import Service
from holue.service.settings import ServiceSettings

from .conftest import Api, People, Start

G = "/v1/galleries/office"


# Settings


@pytest.mark.parametrize(
    "link", ["javascript:alert({origin})", "https://{origin}/x", "https://archive.example/", "data:text/html,{origin}"]
)
def test_a_link_to_originals_is_an_address_with_the_origin_below_its_host(link: str) -> None:
    with pytest.raises(InvalidParameterError, match="origin_link"):
        ServiceSettings.load(galleries="a", origin_link=link, environment={})
    fine = "https://archive.example/photos/{origin}"
    assert ServiceSettings.load(galleries="a", origin_link=fine, environment={}).origin_link == fine


def test_settings_come_from_the_file_then_the_environment_then_options(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('galleries = "a"\nport = 1\nhost = "::1"\n[limits]\nprobes = 5\ntop_k = 6\n')
    environment = {"HOLUE_SERVICE_PORT": "2", "HOLUE_SERVICE_LIMITS_TOP_K": "7", "HOLUE_DATA": "x"}
    settings = ServiceSettings.load(file, environment=environment, port=3, host=None)
    assert (settings.galleries, settings.port, settings.host) == ("a", 3, "::1")
    assert (settings.limits.probes, settings.limits.top_k) == (5, 7)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("galleries = 'a'\nprt = 1\n", "prt: Extra inputs.*the keys are .*limits.body_bytes.*port"),
        ("galleries = 'a'\n[limits]\nbody = 1\n", "limits.body: Extra inputs"),
        ("galleries = 'a'\nport = 70000\n", "port: .*less than or equal to 65535, got 70000"),
        ("port = 1\n", "galleries is not set"),
    ],
)
def test_a_setting_that_is_wrong_is_named_with_the_way_out(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "service.toml"
    file.write_text(text)
    with pytest.raises(InvalidParameterError, match=told):
        ServiceSettings.load(file, environment={})


def test_an_unknown_variable_or_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match="HOLUE_SERVICE_PRT is no setting"):
        ServiceSettings.load(environment={"HOLUE_SERVICE_PRT": "1"}, galleries="a")
    with pytest.raises(InvalidFileError, match="not a readable TOML"):
        ServiceSettings.load(tmp_path / "nowhere.toml")


def test_every_error_of_holue_has_a_status() -> None:
    def below(kind: type[HolueError]) -> list[type[HolueError]]:
        return [kind, *(each for child in kind.__subclasses__() for each in below(child))]

    direct = {kind for kind in below(HolueError) if kind.__module__ == "holue.errors"}
    assert not {kind for kind in direct if not any(each in STATUS for each in kind.__mro__[:2])}


# Logs and metrics


def test_the_log_names_routes_and_keys_but_no_subject_and_no_embedding(api: Api, people: People) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    logger = logging.getLogger("holue")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.DEBUG)
    try:
        sample = [{"embedding": people.samples(50, 1)[0].tolist()}]
        api.post(f"{G}/subjects", json={"subjects": [{"id": "Secret Name", "samples": sample}]})
        api.get(f"{G}/subjects/Secret%20Name", headers={"x-request-id": "abc"})
        api.get(f"{G}/subjects/Other%20Name", headers={"x-request-id": "bad id\t"})
        api.post(f"{G}/identify", json={"probes": people.samples(50, 1).tolist()})
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    asked = [line for line in lines if line["message"] == "request"]
    assert [line["status"] for line in asked] == [201, 200, 404, 200]
    assert asked[1]["route"] == "/v1/galleries/{gallery}/subjects/{subject}"
    assert asked[1]["request_id"] == "abc"
    assert len(asked[2]["request_id"]) == 28
    assert "Name" not in stream.getvalue()
    assert str(float(people.samples(50, 1)[0, 0]))[:8] not in stream.getvalue()


def test_metrics_count_requests_decisions_and_batches(api: Api, people: People) -> None:
    api.post(f"{G}/identify", json={"probes": np.concatenate([people.samples(3, 2), people.samples(300, 1)]).tolist()})
    text = api.get("/metrics").text
    assert 'holue_decisions_total{decision="accepted",gallery="office"} 2.0' in text
    assert 'holue_decisions_total{decision="rejected",gallery="office"} 1.0' in text
    assert 'holue_batch_probes_sum{gallery="office"} 3.0' in text
    assert 'route="/v1/galleries/{gallery}/identify",status="200"} 1.0' in text
    assert 'holue_subjects{gallery="office"} 20.0' in text
    for stage in ("read", "wait", "scan", "write", "all"):
        assert f'holue_stage_seconds_count{{stage="{stage}"}}' in text


def test_a_service_that_stops_is_alive_and_not_ready(api: Api) -> None:
    assert api.get("/livez").status_code == api.get("/readyz").status_code == 200
    api.service.ready = False
    assert api.get("/livez").status_code == 200
    assert api.get("/readyz").status_code == 503


def test_an_answer_that_takes_too_long_is_given_up_and_the_next_one_comes(start: Start, people: People) -> None:
    api = start(limits={"seconds": 0.05})
    batcher = api.service.galleries.get("office").batcher
    held, current = threading.Event(), batcher._current

    def slow() -> Any:
        held.wait(5)
        return current()

    batcher._current = slow
    probe = {"probes": people.samples(3, 1).tolist()}
    answer = api.post(f"{G}/identify", json=probe)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["type"].endswith("timeout")
    held.set()
    batcher._limits = type(batcher._limits)(seconds=30)
    assert api.post(f"{G}/identify", json=probe).json()["answers"][0]["subject"] == "p3"


def test_requests_beyond_the_limit_are_refused_while_health_still_answers(start: Start) -> None:
    api = start(limits={"requests": 1})
    middleware: Any = api.client.app.middleware_stack  # type: ignore[attr-defined]
    while type(middleware).__name__ != "RequestLimits":
        middleware = middleware.__dict__.get("_app") or middleware.app
    middleware._under_way = 1
    refused = api.get("/v1/galleries")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert api.get("/livez").status_code == 200
    middleware._under_way = 0
    assert api.get("/v1/galleries").status_code == 200


def test_a_damaged_gallery_answers_incomplete_and_takes_no_change(folder: Path, start: Start, people: People) -> None:
    with open_gallery(folder / "office") as gallery:
        gallery.compact()
    segments = sorted((folder / "office" / "segments").iterdir())
    assert segments
    with open_gallery(folder / "office") as gallery:
        gallery.enroll(people.samples(60, 2), ["late"] * 2)
        gallery.enroll(people.samples(61, 2), ["later"] * 2)
    for segment in segments:
        segment.unlink()
    with pytest.raises(CorruptStoreError):
        start()
    api = start(damaged="serve")
    answer = api.post(f"{G}/identify", json={"probes": people.samples(60, 1).tolist()}).json()["answers"][0]
    assert (answer["decision"], answer["subject"]) == ("incomplete", None)
    assert "20 of 22 enrolled subjects could not be read" in answer["reasons"][0]
    assert answer["candidates"][0]["subject"] == "late"
    claim = api.post(f"{G}/verify", json={"subject": "late", "probe": people.samples(60, 1)[0].tolist()}).json()
    assert claim["decision"] == "incomplete"
    assert api.delete(f"{G}/subjects/late").status_code == 503
    assert api.post("/v1/erasures", json={"gallery": "office", "subjects": ["late"]}).status_code == 503


# Files


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("onnxruntime")
    folder = make_demo_gallery(tmp_path_factory.mktemp("demo"), subjects=60)
    settings = ServiceSettings(galleries=str(folder))
    service = Service(settings, embedder=glyph_files(settings.limits)).open()
    assert service.first_key is not None
    with TestClient(create_app(service=service), headers={"x-api-key": service.first_key.text}) as client:
        yield client
    service.close()


def picture(character: str) -> bytes:
    from PIL import Image

    from holue.datasets.glyphs.rendering import render

    stream = io.BytesIO()
    Image.fromarray(render(character)).save(stream, "PNG")
    return stream.getvalue()


def test_the_demo_is_enrolled_and_calibrated_and_knows_its_characters(demo: TestClient) -> None:
    told = demo.get("/v1/galleries/demo").json()
    assert (told["subjects"], told["embedder"], told["calibration"]["number"]) == (60, "image", 1)
    names = [each["id"] for each in demo.get("/v1/galleries/demo/subjects").json()["subjects"]][:20]
    files = [(name, ("x.png", picture(name))) for name in names]
    answers = demo.post("/v1/galleries/demo/identify", files=files).json()["answers"]
    best = [answer["candidates"][0]["subject"] for answer in answers]
    assert np.mean([one == other for one, other in zip(names, best)]) > 0.6


def test_files_of_one_name_are_samples_of_one_probe(demo: TestClient) -> None:
    name = demo.get("/v1/galleries/demo/subjects").json()["subjects"][5]["id"]
    other = demo.get("/v1/galleries/demo/subjects").json()["subjects"][9]["id"]
    parts = [("a", picture(name)), ("b", picture(other)), ("a", picture(name))]
    together = demo.post("/v1/galleries/demo/identify", files=[(part, ("x.png", data)) for part, data in parts])
    assert together.status_code == 200, together.text
    alone = demo.post("/v1/galleries/demo/identify", files=[("a", ("x.png", picture(name)))]).json()["answers"][0]
    answers = together.json()["answers"]
    assert len(answers) == 2
    assert answers[0]["subject"] == alone["subject"]
    assert answers[0]["score"] == pytest.approx(
        alone["score"], abs=1e-6
    )  # two equal samples pool to the same direction


def test_a_subject_is_enrolled_from_files_and_known_by_another_one(demo: TestClient) -> None:
    enrolled = {each["id"] for each in demo.get("/v1/galleries/demo/subjects?limit=1000").json()["subjects"]}
    new = next(each for each in "АБГДЖЗИЛПФЦЧШЩЪЫЭЮЯ" if each not in enrolled)
    url = f"/v1/galleries/demo/subjects/{new}/files"
    for n in (1, 2):
        made = demo.post(url, files=[("desk", ("x.png", picture(new)))] * n)
        assert made.status_code == 201, made.text
    samples = demo.get(f"/v1/galleries/demo/subjects/{new}/samples").json()["samples"]
    assert [each["origin"] for each in samples] == ["desk"] * 3
    assert all(each["concentration"] > 0 for each in samples)
    answer = demo.post("/v1/galleries/demo/identify", files=[("p", ("x.png", picture(new)))]).json()["answers"][0]
    assert answer["candidates"][0]["subject"] == new


def test_files_of_another_model_than_the_gallery_s_are_refused(start: Start) -> None:
    pytest.importorskip("onnxruntime")
    api = start()
    assert api.post("/v1/galleries", json={"name": "faces", "dim": 128, "model": "another"}).status_code == 201
    api.service.reader._embedder = glyph_files(api.service.settings.limits)
    sent = api.post("/v1/galleries/faces/identify", files={"probe": ("x.png", picture("A"))})
    assert (sent.status_code, sent.json()["type"]) == (409, "urn:holue:problem:other-model")
