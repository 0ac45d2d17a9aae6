"""Ledgers under test, in a file and beside a gallery in PostgreSQL, and real photographs."""

from __future__ import annotations

import os
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holue.service.ledger.database import Database
from holue.service.service import Service
from holue.service.settings import EmbedderSettings, ServiceSettings

Open = Callable[[], Database]


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a gallery is: a directory or a URL."""
    if request.param == "file":
        return str(tmp_path)
    server: Any = request.getfixturevalue("postgres")
    return str(server.url(f"g{uuid.uuid4().hex[:12]}"))


@pytest.fixture
def open_ledger(place: str) -> Iterator[Open]:
    """Opens the same ledger as often as wanted, as several processes would."""
    opened: list[Database] = []

    def again() -> Database:
        opened.append(Database.of_gallery(place))
        return opened[-1]

    yield again
    for database in opened:
        database.close()


@pytest.fixture
def database(open_ledger: Open) -> Database:
    return open_ledger()


@pytest.fixture
def file_database(tmp_path: Path) -> Iterator[Database]:
    with Database.of_gallery(tmp_path) as database:
        yield database


class Originals:
    """The original photographs of Labelled Faces in the Wild, and a service that finds the faces in them."""

    SEVERAL = "Ahmet_Demir/Ahmet_Demir_0001.jpg"
    """A photograph with four faces."""
    PEOPLE = (
        "Adrien_Brody", "Al_Gore", "Al_Sharpton", "Albert_Costa", "Alejandro_Toledo", "Alvaro_Uribe", "Andre_Agassi",
        "Ann_Veneman",
    )  # fmt: skip

    def __init__(self) -> None:
        from holue.embedding.models.specification import models_directory

        pytest.importorskip("cv2")
        pytest.importorskip("onnxruntime")
        root = Path(__file__).resolve().parents[2]
        path = Path(os.environ.get("HOLUE_DATA", root / ".." / "shared" / "data")) / "lfw" / "originals.zip"
        for needed in (path, models_directory() / "yunet.onnx", models_directory() / "arcface_mbf.onnx"):
            if not needed.is_file():
                pytest.skip(f"real photographs are not tested: {needed} is missing; set HOLUE_DATA and HOLUE_MODELS")
        self._archive = zipfile.ZipFile(path)

    def read(self, name: str) -> bytes:
        """The bytes of a photograph."""
        return self._archive.read(name)

    def of(self, person: str, number: int) -> bytes:
        """A photograph of one of ``PEOPLE``, from 1 to 6."""
        return self.read(f"{person}/{person}_{number:04}.jpg")

    def service(self, folder: Path, **settings: Any) -> Service:
        """A service on a directory, which finds faces in photographs."""
        folder.mkdir(exist_ok=True)
        embedder = EmbedderSettings(model="arcface", detect="yunet")
        return Service(ServiceSettings(galleries=str(folder), port=0, embedder=embedder, **settings)).open()

    def gallery(self, service: Service, name: str, *, keep_images: bool) -> Any:
        """An empty gallery for the model of the service, that accepts from a cosine of 0.4."""
        assert service.embedder is not None
        opened = service.galleries.create(name, dim=512, model=service.embedder.model, method="galue", threshold=0.4)
        if keep_images:
            opened.ledger.images.start_keeping()
        return opened


@pytest.fixture(scope="session")
def originals() -> Originals:
    """Real photographs, or a skip that says what is missing."""
    return Originals()
