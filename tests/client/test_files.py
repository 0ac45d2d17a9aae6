"""Files by the client: the answers are those of the HTTP routes, over a socket, blocking and awaited."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn

from holue.client import AsyncClient, Client
from holue.client.calls import Calls
from holue.datasets.glyphs.rendering import render
from holue.errors import InvalidFileError, InvalidParameterError
from holue.service.app import create_app
from holue.service.demo import glyph_files, make_demo_gallery
from holue.service.server import address_of, bind
from holue.service.service import Service
from holue.service.settings import ServiceSettings


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address and the key of the demo's service, which reads pictures."""
    folder = make_demo_gallery(tmp_path_factory.mktemp("demo"), subjects=60)
    settings = ServiceSettings(galleries=str(folder), port=0)
    service = Service(settings, embedder=glyph_files(settings.limits)).open()
    sock = bind(settings)
    server = uvicorn.Server(uvicorn.Config(create_app(service=service), log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    assert service.first_key is not None
    yield address_of(service.settings, sock), service.first_key.text
    server.should_exit = True
    thread.join()
    service.close()


@pytest.fixture
def pictures(served: tuple[str, str], tmp_path: Path) -> dict[str, Path]:
    """Pictures of two enrolled characters."""
    from PIL import Image

    with Client(served[0], key=served[1], gallery="demo") as client:
        enrolled = [str(subject.id) for subject in client.subjects(limit=2)[0]]
    found = {character: tmp_path / f"{place}.png" for place, character in enumerate(enrolled)}
    for character, path in found.items():
        Image.fromarray(render(character)).save(path)
    return found


def test_files_are_answered_as_the_route_answers_them(served: tuple[str, str], pictures: dict[str, Path]) -> None:
    address, key = served
    paths = list(pictures.values())
    with Client(address, key=key, gallery="demo") as client:
        answers = client.identify_files(paths, top_k=3)
        assert [answer["candidates"][0]["subject"] for answer in answers] == list(pictures)
        assert len(answers[0]["candidates"]) == 3
        [one] = client.identify_files(paths[0])
        [content] = client.identify_files({"x": paths[0].read_bytes()})
        [pooled] = client.identify_files({"both": paths})
        assert one["candidates"] == content["candidates"] != pooled["candidates"]

    async def awaited() -> list[dict[str, object]]:
        async with AsyncClient(address, key=key, gallery="demo") as client:
            return await client.identify_files(pictures)  # type: ignore[arg-type]

    again = asyncio.run(awaited())
    with httpx.Client(base_url=address, headers={"x-api-key": key}) as plain:
        sent = [(name, (path.name, path.read_bytes())) for name, path in pictures.items()]
        route = plain.post("/v1/galleries/demo/identify", files=sent).json()["answers"]
    for one, other in zip(again, route, strict=True):
        assert {**one, "request_id": "", "review_id": ""} == {**other, "request_id": "", "review_id": ""}


def test_a_subject_is_enrolled_from_files_once(served: tuple[str, str], pictures: dict[str, Path]) -> None:
    address, key = served
    with Client(address, key=key, gallery="demo") as client:
        call = Calls("demo").enroll_files("new", list(pictures.values()))
        first, again = client.send(call), client.send(call)  # as after a lost connection
        assert first.version == again.version
        assert first.samples.tolist() == again.samples.tolist()
        assert len(client.samples("new")) == 2
        more = client.enroll_files("new", next(iter(pictures.values())).read_bytes())
        assert len(client.samples("new")) == 3
        assert more.version == first.version + 1
        client.remove("new")


def test_embeddings_are_taken_from_npy_files(served: tuple[str, str], tmp_path: Path) -> None:
    address, key = served
    rows = np.random.default_rng(0).standard_normal((2, 128)).astype(np.float32)
    kept = tmp_path / "rows.npy"
    np.save(kept, rows)
    with Client(address, key=key, gallery="demo") as client:
        kappa = [100.0, 50.0]
        assert client.identify(str(kept), kappa).score.tolist() == client.identify(rows, kappa).score.tolist()
        client.enroll(kept, ["row"] * 2, concentration=kappa)
        assert len(client.samples("row")) == 2
        client.remove("row")


def test_files_that_cannot_be_sent_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    calls = Calls("demo")
    with pytest.raises(InvalidFileError, match=r"none\.png: cannot be read"):
        calls.identify_files(tmp_path / "none.png")
    with pytest.raises(InvalidParameterError, match="at least one file"):
        calls.enroll_files("ann", [])
    with pytest.raises(InvalidParameterError, match="cannot be called 'face'"):
        calls.identify_files({"face": b"x"})
    pickled = tmp_path / "pickled.npy"
    np.save(pickled, np.array([{}], object), allow_pickle=True)
    with pytest.raises(InvalidFileError, match=r"not a plain \.npy array"):
        calls.identify(pickled)
