"""Kill a running service at random moments under a load of writes, many times, and check what it leaves behind.

Clients enrol, change, remove and erase subjects through `holue serve`, and note what was acknowledged. The process is killed with
SIGKILL at a random moment, also while it starts. Then the gallery is opened: every acknowledged change must be there, the gallery
and the ledger must be whole, and once the service has started again every change must have its row in the audit log.

    python tests/torture/kill_service.py --times 300 --seed 7
    python tests/torture/kill_service.py --times 60 --seed 7 --home postgres
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conftest import PostgresServer
from tests.service.http.process import Running, ready, served

import holue
from holue.service.ledger.ledger import Ledger

DIM = 16
WRITERS = 4
PATIENCE = 20.0
"""Seconds after which a service is killed however few changes it has made."""
SUBJECTS_AT_MOST = 3000
"""After so many a new gallery is begun, so that opening and comparing stay quick."""


class Writer(threading.Thread):
    """Changes subjects of its own until the service is gone; ``now`` is what is acknowledged of each."""

    def __init__(self, running: Running, gallery: str, key: str, first: int) -> None:
        super().__init__()
        self._running, self._gallery, self._key, self._first = running, gallery, key, first
        self._path = f"/v1/galleries/{gallery}/subjects"
        self.now: dict[str, tuple[str, str | None]] = {}  # enrolled, removed or erased; and the purpose
        self.under_way: str | None = None
        self.done: Counter[str] = Counter()
        self.failed: AssertionError | None = None

    def run(self) -> None:
        """Send one change after the other."""
        try:
            self._write()
        except AssertionError as error:
            self.failed = error

    def _write(self) -> None:
        choose = random.Random(self._first)
        with self._running.client(self._key) as client, suppress(httpx.TransportError):
            for number in range(self._first, self._first + 10**6):
                enrolled = [name for name, (state, _) in self.now.items() if state == "enrolled"]
                verb = choose.choices(["enroll", "purpose", "remove", "erase"], [6, 3, 2, 0.3 if enrolled else 0])[0]
                if verb == "enroll" or not enrolled:
                    self._enroll(client, f"n{number}", np.random.default_rng(number).standard_normal(DIM).tolist())
                else:
                    self._change(client, verb, choose.choice(enrolled), f"purpose {number}")

    def _enroll(self, client: httpx.Client, name: str, row: list[float]) -> None:
        self.under_way = name
        body = {"subjects": [{"id": name, "samples": [{"embedding": row}]}]}
        self._acknowledge("enroll", client.post(self._path, json=body), name, ("enrolled", None))

    def _change(self, client: httpx.Client, verb: str, name: str, purpose: str) -> None:
        self.under_way = name
        if verb == "purpose":
            answer = client.patch(f"{self._path}/{name}", json={"purpose": purpose})
            self._acknowledge(verb, answer, name, ("enrolled", purpose))
        elif verb == "remove":
            self._acknowledge(verb, client.delete(f"{self._path}/{name}"), name, ("removed", None))
        else:
            answer = client.post("/v1/erasures", json={"gallery": self._gallery, "subjects": [name]})
            self._acknowledge(verb, answer, name, ("erased", None))

    def _acknowledge(self, verb: str, answer: httpx.Response, name: str, state: tuple[str, str | None]) -> None:
        assert answer.status_code in (200, 201), answer.text
        self.now[name] = state
        self.under_way = None
        self.done[verb] += 1


def check(place: str, acknowledged: dict[str, tuple[str, str | None]], in_doubt: set[str]) -> None:
    """Compare the gallery with what was acknowledged; subjects in doubt had a change under way."""
    with holue.open(place) as gallery:
        found = {subject.id: subject.purpose for subject in gallery.subjects(limit=10**7)}
        assert gallery.verify() == []
    for name, (state, purpose) in acknowledged.items():
        if name in in_doubt:
            continue
        if state == "enrolled":
            assert found.get(name, "missing") == purpose, f"{name}: {found.get(name, 'missing')!r}, not {purpose!r}"
        else:
            assert name not in found, f"{name} was {state} and is there"
    strange = set(found) - set(acknowledged) - in_doubt
    assert not strange, f"nobody asked for {sorted(strange)[:3]}"


def check_log(place: str, gallery: str) -> int:
    """Every change of a request has its row, and every row stands in its place; the number of rows that were added."""
    with holue.open(place) as opened, Ledger.open(place) as ledger:
        added = ledger.recovery.recover(
            gallery, opened.store
        )  # as a start of the service does; on a server after some minutes
        assert ledger.recovery.missing(gallery, opened.store) == []
        assert ledger.problems() == [], ledger.problems()
        rows = list(ledger.audit_log.entries())
        changes = {change.version for change in opened.changes(opened.status().store.oldest_version) if change.by}
    logged = {row.gallery_version for row in rows}
    assert changes <= logged, f"versions without a row: {sorted(changes - logged)[:5]}"
    return len(added)


def kill_while_starting(place: str, seconds: float) -> None:
    command = [sys.executable, "-m", "holue", "serve", place, "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    process.kill()
    process.wait()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--times", type=int, default=100, help="kills")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--home", choices=["directory", "postgres"], default="directory")
    asked.add_argument("--most", type=int, default=60, help="changes before a kill, at most")
    given = asked.parse_args()
    choose, total = random.Random(given.seed), Counter[str]()
    folder = Path(tempfile.mkdtemp(prefix="holue-kill-service-"))
    server = PostgresServer() if given.home == "postgres" else None
    began = time.monotonic()
    try:
        gallery, place, key, rounds = "", "", "", 0
        acknowledged: dict[str, tuple[str, str | None]] = {}
        in_doubt: set[str] = set()
        for kill in range(given.times):
            if not place or len(acknowledged) > SUBJECTS_AT_MOST:
                rounds += 1
                gallery, key, acknowledged, in_doubt = f"torture{rounds}", "", {}, set()
                place = str(folder / gallery) if server is None else server.url(gallery)
                holue.open(place, create=True, dim=DIM, method="galue", threshold=0.6).close()
            if key and choose.random() < 0.15:
                kill_while_starting(place, choose.uniform(0.2, 3.0))
                total["kills while starting"] += 1
            with served(place) as running:
                key = key or running.key or ""
                with running.client(key) as client:
                    ready(client)
                writers = [
                    Writer(running, gallery, key, (kill * WRITERS + each + 1) * 10**6) for each in range(WRITERS)
                ]
                for writer in writers:
                    writer.start()
                wanted, until = choose.randrange(given.most), time.monotonic() + PATIENCE
                while sum(writer.done.total() for writer in writers) < wanted and time.monotonic() < until:
                    time.sleep(0.002)
                time.sleep(choose.uniform(0, 0.05))
                os.kill(running.process.pid, signal.SIGKILL)
                for writer in writers:
                    writer.join()
            total["kills"] += 1
            for writer in writers:
                if writer.failed is not None:
                    raise writer.failed
                acknowledged |= writer.now
                total.update(writer.done)
                if writer.under_way is not None:
                    in_doubt.add(writer.under_way)
            check(place, acknowledged, in_doubt)
            total["rows added"] += check_log(place, gallery)
            print(f"kill {kill + 1}: {dict(total)}", flush=True)
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    print({**total, "seconds": round(time.monotonic() - began)})


if __name__ == "__main__":
    main()
