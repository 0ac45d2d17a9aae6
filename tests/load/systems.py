"""Systems: the service, its peers and the library itself, each in processes of its own on the same processors."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .generator import Load, spec
from .world import THRESHOLD, World

ROOT = Path(__file__).resolve().parents[2]
GALLERY = "load"


@dataclass(frozen=True)
class Place:
    """Where files are, and which processors answer and which ask."""

    folder: Path
    server_cores: list[int]
    generator_cores: list[int]

    def path(self, name: str) -> str:
        """A file of the measurement."""
        return str(self.folder / name)

    @property
    def environment(self) -> dict[str, str]:
        """As many threads as processors, for everybody."""
        n = str(len(self.server_cores))
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), n)
        found = os.environ.get("PYTHONPATH")
        return {**os.environ, **threads, "PYTHONPATH": f"{ROOT}{os.pathsep}{found}" if found else str(ROOT)}

    def pin(self) -> None:
        """Hold the calling process to the processors that answer."""
        os.sched_setaffinity(0, self.server_cores)


def prepare(place: Place, world: World) -> None:
    """Write the vectors down, and enrol them."""
    import numpy as np

    import holue

    np.save(place.path("gallery.npy"), world.gallery)
    np.save(place.path("probes.npy"), world.probes)
    names = [f"s{number}" for number in range(len(world.gallery))]
    dim = world.gallery.shape[1]
    with holue.open(place.path(GALLERY), create=True, dim=dim, method="galue", threshold=THRESHOLD) as gallery:
        for first in range(0, len(names), 10_000):
            gallery.enroll(world.gallery[first : first + 10_000], names[first : first + 10_000])


@dataclass(frozen=True)
class Running:
    """A system that answers."""

    target: dict[str, Any]
    pid: int


def measure(place: Place, running: Running, load: Load, **target: Any) -> dict[str, Any]:
    """Have the generator ask a system; ``cpu_ms`` are the milliseconds of a processor that the system took for an answer."""
    before = processor_seconds(running.pid)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.load.generator"],
        input=spec({**running.target, **target}, load, place.generator_cores),
        capture_output=True,
        text=True,
        env=place.environment,
        cwd=ROOT,
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    measured: dict[str, Any] = json.loads(ran.stdout)
    measured["cpu_ms"] = 1e3 * (processor_seconds(running.pid) - before) / max(measured["served"], 1)
    print(f"{load.clients} clients: {measured['rate']:.0f} answers/s", file=sys.stderr, flush=True)
    return measured


def processor_seconds(pid: int) -> float:
    """What a process and all that it started took of the processors."""
    import psutil

    process, total = psutil.Process(pid), 0.0
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def library(place: Place, batch: int, seconds: float) -> dict[str, Any]:
    """The library's own ``identify``, called in a loop."""
    command = [sys.executable, "-m", "tests.load.library", place.path(GALLERY), place.path("probes.npy")]
    ran = subprocess.run(
        [*command, str(batch), str(seconds)], capture_output=True, text=True, env=place.environment, cwd=ROOT,
        preexec_fn=place.pin,
    )  # fmt: skip
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    measured: dict[str, Any] = json.loads(ran.stdout)
    return measured


@contextmanager
def service(place: Place, batch: int = 1) -> Iterator[Running]:
    """``holue serve`` as users start it: keys, audit log and request log are on."""
    settings = place.folder / "service.toml"
    settings.write_text("port = 0\n")
    command = [sys.executable, "-m", "holue", "serve", place.path(GALLERY), "--config", str(settings), "--json"]
    with open(place.path("service.log"), "a") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=place.environment,
            cwd=ROOT,
            preexec_fn=place.pin,
        )
        assert process.stdout is not None
        with _ended(process):
            text = ""
            while not text.rstrip().endswith("}"):
                line = process.stdout.readline()
                assert line, "the service ended; see service.log"
                text += line
            told = json.loads(text)
            kept = place.folder / "key"
            if told["first_key"]:
                kept.write_text(told["first_key"])
            host, _, port = told["address"].removeprefix("http://").partition(":")
            _wait(int(port))
            target = _http(place, f"/v1/galleries/{GALLERY}/identify", {"x-api-key": kept.read_text()}, batch)
            yield Running({**target, "host": host, "port": int(port)}, process.pid)


@contextmanager
def peer(place: Place, name: str, *arguments: str) -> Iterator[Running]:
    """A server of :mod:`tests.load.peers`."""
    port = _free_port()
    command = [sys.executable, "-m", "tests.load.peers", name, str(port), *arguments]
    process = subprocess.Popen(command, env=place.environment, cwd=ROOT, preexec_fn=place.pin)
    with _ended(process):
        _wait(port)
        yield Running({**_http(place, "/identify", {}, 1), "host": "127.0.0.1", "port": port}, process.pid)


@contextmanager
def postgres(place: Place, world: World) -> Iterator[Running]:
    """PostgreSQL with pgvector, exact: no index, the table in shared memory; asked without a web service before it."""
    import pgserver
    import psycopg
    from pgvector import Vector
    from pgvector.psycopg import register_vector

    before = os.sched_getaffinity(0)
    place.pin()
    server = pgserver.get_server(place.folder / "postgres", cleanup_mode="delete")
    os.sched_setaffinity(0, before)
    try:
        database = server.get_uri()
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET max_connections = 300")
            connection.execute("ALTER SYSTEM SET shared_buffers = '1GB'")
            connection.execute(f"ALTER SYSTEM SET max_parallel_workers_per_gather = {len(place.server_cores) - 1}")
        _restart(server, place)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
            register_vector(connection)
            dim = world.gallery.shape[1]
            connection.execute(f"CREATE TABLE subjects (id text, embedding vector({dim}) STORAGE PLAIN)")
            with (
                connection.cursor() as cursor,
                cursor.copy("COPY subjects (id, embedding) FROM STDIN WITH (FORMAT BINARY)") as copy,
            ):
                copy.set_types(["text", "vector"])
                for number, row in enumerate(world.gallery):
                    copy.write_row((f"s{number}", Vector(row)))
            connection.execute("VACUUM ANALYZE subjects")
            connection.execute("SELECT count(*) FROM subjects WHERE embedding IS NOT NULL")
        yield Running({"database": database, "probes": place.path("probes.npy")}, _postmaster(server.pgdata))
    finally:
        server.cleanup()


def _postmaster(folder: Path) -> int:
    """The process of the server, which is another one after a restart."""
    return int((Path(folder) / "postmaster.pid").read_text().split()[0])


def _restart(server: Any, place: Place) -> None:
    import pgserver

    before = os.sched_getaffinity(0)
    place.pin()
    pgserver.pg_ctl(
        ["-w", "-m", "fast", "-l", str(server.log), "restart"], pgdata=server.pgdata, user=server.system_user
    )
    os.sched_setaffinity(0, before)


def _http(place: Place, path: str, headers: dict[str, str], batch: int) -> dict[str, Any]:
    return {"path": path, "headers": headers, "batch": batch, "probes": place.path("probes.npy")}


@contextmanager
def _ended(process: subprocess.Popen[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _wait(port: int) -> None:
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not start within a minute")
