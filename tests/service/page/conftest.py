"""The demo's service on a socket, and a Chromium that looks at it."""

from __future__ import annotations

import shutil
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from holue.service.app import create_app
from holue.service.demo import glyph_files, make_demo_gallery, playing, queue_examples
from holue.service.roles import Role
from holue.service.server import address_of, bind
from holue.service.service import Service
from holue.service.settings import ServiceSettings

SUBJECTS = 100


@dataclass(frozen=True)
class Site:
    """A running service."""

    address: str
    service: Service

    def key(self, role: str) -> str:
        """A new key of a role."""
        assert self.service.access.keys is not None
        return self.service.access.keys.create(Role.parse(role), holder=f"a {role}").text

    def sign_in(self, page: Any, role: str = "admin") -> None:
        """Sign in with a new key of a role."""
        page.goto(f"{self.address}/sign-in")
        page.get_by_label("Key").fill(self.key(role))
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(lambda url: "sign-in" not in url)


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = make_demo_gallery(tmp_path_factory.mktemp("page") / "galleries", subjects=SUBJECTS)
        opened = Service(ServiceSettings(galleries=str(folder))).open()
        queue_examples(opened, probes=60)
        opened.close()
    return folder


@pytest.fixture
def service(demo_folder: Path, tmp_path: Path) -> Iterator[Service]:
    """The demo's service on a copy of its own."""
    folder = tmp_path / "galleries"
    shutil.copytree(demo_folder, folder)
    settings = ServiceSettings(galleries=str(folder), port=0)
    service = Service(settings, embedder=glyph_files(settings.limits)).open()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        service.try_it = playing(service)
    yield service
    service.close()


@contextmanager
def _on_socket(service: Service) -> Iterator[Site]:
    sock = bind(service.settings)
    server = uvicorn.Server(uvicorn.Config(create_app(service=service), log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield Site(address_of(service.settings, sock), service)
    server.should_exit = True
    thread.join()


@pytest.fixture
def serve() -> Any:
    """Serves any service on a socket, as a context."""
    return _on_socket


@pytest.fixture
def site(service: Service) -> Iterator[Site]:
    """The demo on a socket."""
    with _on_socket(service) as site:
        yield site


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A tab that fails the test where a script fails or the policy of the page is broken."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    said: list[str] = []
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    tab.said = said
    yield tab
    context.close()
