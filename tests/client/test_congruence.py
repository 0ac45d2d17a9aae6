"""One script against an open gallery, the service in process and the service on a socket, on both homes: the same answers."""

from __future__ import annotations

import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn
from anyio.from_thread import BlockingPortal, start_blocking_portal

import holue
from holue.client import AsyncClient, Client
from holue.datasets.simulated import simulate
from holue.gallery.subjects import UNKNOWN
from holue.live.live_gallery import LiveGallery
from holue.recognition.answer.identifications import Identifications
from holue.recognition.risk.certificate import CannotCertifyError
from holue.service.app import create_app
from holue.service.server import address_of, bind
from holue.service.service import Service
from holue.service.settings import ServiceSettings

WORLD = simulate(
    n_subjects=40, n_strangers=40, enrolled_samples=3, dim=32, concentration=90, rng=np.random.default_rng(3)
)
IDS = [f"p{person}" for person in WORLD.gallery.y]
Place = Callable[[], str]
NOT_FAR = {
    "at": "answers of older versions need the gallery itself",
    "calibrated_with": "the same",
    "check_model": "the service checks the model of every request",
    "compact": "upkeep of the home: `holue compact`",
    "current": "a version is an object of the process",
    "dim": "in status()",
    "model": "in status()",
    "refresh": "the service follows its store",
    "remove_samples": "remove_sample: one at a time, with its subject",
    "version": "in status()",
}
"""Verbs of an open gallery that a client has not, and why."""


@pytest.fixture(params=["directory", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A new place for a gallery each time."""
    if request.param == "directory":
        return lambda: str(tmp_path / uuid.uuid4().hex[:8])
    server: Any = request.getfixturevalue("postgres")
    return lambda: str(server.url(f"g{uuid.uuid4().hex[:12]}"))


class InProcess(httpx.BaseTransport):
    """The application without a socket."""

    def __init__(self, app: Any, portal: BlockingPortal) -> None:
        self._inner, self._portal = httpx.ASGITransport(app), portal

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def answered() -> httpx.Response:
            asynchronous = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
            reply = await self._inner.handle_async_request(asynchronous)
            return httpx.Response(reply.status_code, headers=reply.headers, content=await reply.aread())

        return self._portal.call(answered)


def made(place: str) -> str:
    holue.open(place, create=True, dim=32, model="m1", target_fpir=0.1).close()
    return place


@pytest.fixture(params=["in process", "on a socket"])
def client_at(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Client]]:
    """A client of a service on one gallery."""
    with ExitStack() as stack:

        def client(place: str) -> Client:
            settings = ServiceSettings(galleries=made(place), port=0)
            service = Service(settings).open()
            stack.callback(service.close)
            assert service.first_key is not None
            name, key = next(iter(service.galleries)).name, service.first_key.text
            if request.param == "in process":
                portal = stack.enter_context(start_blocking_portal())
                found = Client(
                    "http://service", key=key, gallery=name, transport=InProcess(create_app(service=service), portal)
                )
            else:
                sock = bind(settings)
                server = uvicorn.Server(uvicorn.Config(create_app(service=service), log_config=None, access_log=False))
                thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
                thread.start()
                while not server.started:
                    time.sleep(0.01)
                stack.callback(thread.join)
                stack.callback(setattr, server, "should_exit", True)
                found = Client(address_of(settings, sock), key=key, gallery=name)
            return stack.enter_context(found)

        yield client


def labelled(half: int) -> tuple[Any, list[Any]]:
    """Probes with the subjects they show, those of one half of the people."""
    own = np.flatnonzero(WORLD.probes.person % 2 == half)
    names = {f"p{person}" for person in WORLD.gallery.y} - {"p1", "p2"}
    shown = [f"p{person}" for person in WORLD.probes.person[own]]
    return WORLD.probes.X[own].astype(np.float32), [name if name in names else UNKNOWN for name in shown]


def script(gallery: Any) -> tuple[list[Identifications], list[float]]:
    """What the three are asked to do, and what they say of a calibration.

    Verbs that take one subject in the client take a list locally.
    """
    far = isinstance(gallery, Client)
    said = []
    X, probes = WORLD.gallery.X, WORLD.probes.X
    enrolled = gallery.enroll(X, IDS, consent="form 1", metadata={"p1": {"badge": "A"}})
    assert enrolled.version == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gallery.calibrate()
        said.append(gallery.identify(probes))
        said.append(gallery.identify(probes.astype(np.float32), top_k=3))
        gallery.rename("p1", "né / <one>")
        gallery.merge(["p2"], into="p3")
        gallery.remove("p4" if far else ["p4"])
        said.append(gallery.identify(probes))
        gallery.undo(gallery.status()["version"] if far else gallery.version)
        gallery.add_samples(probes[:1], "p5" if far else ["p5"])
        gallery.split("p3", [int(enrolled.samples[IDS.index("p2")])], new="p2 again")
        said.append(gallery.identify(probes))
        number = gallery.calibrate(*labelled(0), activate=False)
        number = gallery.certify(number["number"] if far else number.number, *labelled(1), target_level=0.2)
        gallery.activate(number["number"] if far else number.number)
        said.append(gallery.identify(probes))
        with pytest.raises(CannotCertifyError) as refused:
            gallery.certify(1, *(each[:5] for each in labelled(1)), target_level=0.001)
        assert refused.value.needed_without_error == 2995
        calibrations = gallery.calibrations()
        assert [one["number"] if far else one.number for one in calibrations] == [1, 2, 3]
        preview = gallery.preview(1, *labelled(1))
        told = [
            preview[name] if far else getattr(preview, name) for name in ("probes", "threshold", "active_threshold")
        ]
        replaced = gallery.replace(probes[1:3], "p7" if far else ["p7", "p7"])
        said.append(gallery.identify(probes))
        if far:
            gallery.remove_sample("p7", int(replaced.samples[0]))
        else:
            gallery.remove_samples([int(replaced.samples[0])])
        gallery.change_settings(filter_below=0.5)
        said.append(gallery.identify(probes))
        assert gallery.erase(["p6"]).clean
        gallery.update("p8" if far else ["p8"], retain_until=1.0)
        numbers = gallery.purge(dry_run=True)[0]
        assert gallery.subject("p8").number in numbers
        again, receipt = gallery.purge()
        assert again == numbers
        assert receipt.clean
        assert gallery.purge() == ([], None)
        errors = gallery.expected_errors()
        told += [len(numbers), errors["fpir"]["wrong"] if far else errors.fpir.wrong]
        told += [errors["fnir"]["upper"] if far else errors.fnir.upper]
        told += [errors["curve"][-1]["errors"]["share"] if far else errors.kept(1.0)[0].share]
        told += [errors["curve"][49]["filter_below"] if far else errors.filter_at(0.5)]
        said.append(gallery.identify(probes))
    assert gallery.subject("né / <one>").metadata == {"badge": "A"}
    return said, told


def same(first: Identifications, second: Identifications) -> None:
    for name in Identifications.__dataclass_fields__:
        one, other = getattr(first, name), getattr(second, name)
        if one.dtype.kind == "f":
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            assert one.tolist() == other.tolist(), name


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_client_has_every_verb_of_an_open_gallery(client: type) -> None:
    verbs = {name for name in dir(LiveGallery) if not name.startswith("_")}
    assert verbs - set(dir(client)) == set(NOT_FAR) & verbs


def test_the_service_answers_as_an_open_gallery_does(place: Place, client_at: Callable[[str], Client]) -> None:
    with holue.open(made(place())) as gallery:
        local, previewed = script(gallery)
    far, previewed_far = script(client_at(place()))
    assert previewed == previewed_far
    assert len(local) == len(far)
    for one, other in zip(local, far):
        same(one, other)
