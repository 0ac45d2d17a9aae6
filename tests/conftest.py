"""The real data and a PostgreSQL server, where they are there: tests that need them are skipped with a reason elsewhere."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

_ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def real_data() -> Callable[[str], Path]:
    """The path of a file or folder of the real data, or a skip that says where it was looked for."""

    def find(name: str) -> Path:
        path = Path(os.environ.get("HOLUE_DATA", _ROOT / ".." / "shared" / "data")) / name
        if not path.exists():
            pytest.skip(f"needs the real data {name}; set HOLUE_DATA to the folder that holds it")
        return path

    return find


@pytest.fixture(scope="session")
def real_faces(real_data: Callable[[str], Path]) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
    """The embeddings of LFW and whose they are."""
    with np.load(real_data("lfw/arcface_mbf.npz"), allow_pickle=False) as file:
        return file["embeddings"].astype(np.float32, copy=False), file["subject_id"]


class InstalledServer:
    """The server that is installed on this machine, with the methods that tests use of pgserver's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
        if self.user is not None:
            shutil.chown(folder, self.user)
        self._run("initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres")
        self.ensure_postgres_running()

    def get_uri(self) -> str:
        return f"postgresql://postgres:@/postgres?host={self.folder}"

    def get_pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().split()[0])

    def ensure_postgres_running(self) -> None:
        self._run("pg_ctl", "-w", "-o", f"-h '' -k {self.folder}", "-l", str(self.folder / "log"), "start")

    def cleanup(self) -> None:
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *given: str) -> None:
        command = [program, "-D", str(self.folder), *given]
        subprocess.run(command, user=self.user, cwd="/", check=True, stdout=subprocess.DEVNULL)


class PostgresServer:
    """A real server in a temporary directory, from pgserver or installed here; it listens on a socket only."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holue-pg-"))
        self._run: Any
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it warns where XDG_RUNTIME_DIR is not set
                import pgserver
            self._run = pgserver.get_server(self.folder, cleanup_mode="delete")
        except ImportError:  # it has no wheel for Python 3.13
            self._run = InstalledServer(self.folder)

    def url(self, gallery: str) -> str:
        return f"{self._run.get_uri()}&gallery={gallery}"

    @property
    def database(self) -> str:
        return str(self._run.get_uri())

    def crash(self) -> None:
        """Kill the server without letting it write anything."""
        import psutil

        main = psutil.Process(self._run.get_pid())
        others = main.children(recursive=True)
        main.kill()  # its own processes end by themselves when it is gone
        psutil.wait_procs([main, *others], timeout=30)

    def start(self) -> None:
        self._run.ensure_postgres_running()

    def stop(self) -> None:
        self._run.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of a session."""
    yield from running_server()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that a test may kill."""
    yield from running_server()


def running_server() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    try:
        server = PostgresServer()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(
            f"no PostgreSQL to test with ({error}): install pgserver (Python below 3.13), or put initdb and pg_ctl on the PATH"
        )
    yield server
    server.stop()


def _finder() -> Any:
    """The program that finds a Chromium, as a module."""
    program = Path(__file__).parent / "service" / "page" / "chromium.py"
    specification = importlib.util.spec_from_file_location("chromium_finder", program)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")  # no longer: while Playwright runs, nothing else can run an event loop
def chromium() -> Iterator[Any]:
    """A browser; where none can be had the tests say so, and fail where one is needed."""
    finder = _finder()
    path = finder.find_chromium()
    if path is None:
        (pytest.fail if finder.is_needed() else pytest.skip)(finder.NONE_FOUND)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
