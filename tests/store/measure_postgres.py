"""Measure the PostgreSQL home beside the bare server, in one run: enrolment, opening, and what an erasure costs writers.

The bare server takes the same bytes by binary COPY into a table without indexes, and single rows by INSERT and COMMIT.

    python tests/store/measure_postgres.py --batches 10
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from holue.store.postgres.binary import BYTES, INT, encode
from holue.store.postgres.store import PostgresStore

DIM, BATCH, SINGLES = 512, 10_000, 300


def seconds(work: Callable[..., Any], *given: Any) -> float:
    began = time.perf_counter()
    work(*given)
    return time.perf_counter() - began


def enrolment(store: PostgresStore, bare: psycopg.Connection[Any], batches: int, rng: np.random.Generator) -> None:
    """Batches, and the same bytes by COPY, in turn; then single rows in turn."""
    bare.execute("CREATE TABLE bare (number int8, data bytea)")
    bare.execute("ALTER TABLE bare ALTER COLUMN data SET STORAGE EXTERNAL")

    def copy(first: int, X: np.ndarray) -> None:
        with bare.transaction(), bare.cursor() as cursor, cursor.copy("COPY bare FROM STDIN (FORMAT BINARY)") as stream:
            for piece in encode([INT, BYTES], [np.arange(first, first + len(X)), X]):
                stream.write(piece)

    taken = []
    for i in range(batches):
        X = rng.standard_normal((BATCH, DIM)).astype(np.float32)
        ids = [f"subject {i * BATCH + j}" for j in range(BATCH)]
        taken.append((seconds(store.enroll, X, ids), seconds(copy, i * BATCH, X)))
    own, other = BATCH / np.median(taken, axis=0)
    print(f"enrol batches of {BATCH}, d = {DIM}: {own:,.0f} rows/s; bare COPY {other:,.0f} rows/s")
    taken = []
    for i in range(SINGLES):
        x = rng.standard_normal((1, DIM)).astype(np.float32)
        own = seconds(store.enroll, x, [f"single {i}"])
        taken.append((own, seconds(bare.execute, "INSERT INTO bare VALUES (%s, %s)", [-i, x.tobytes()])))
    own, other = 1e3 * np.median(taken, axis=0)
    print(f"enrol one: {own:.2f} ms; bare INSERT and COMMIT {other:.2f} ms")


def opening(url: str, bare: psycopg.Connection[Any], rows: int) -> None:
    """The first copy, bare COPY of the same table, and openings of a kept copy."""

    def drain() -> None:
        with bare.cursor() as cursor, cursor.copy("COPY holue_measured.embedding TO STDOUT (FORMAT BINARY)") as stream:
            for _ in stream:
                pass

    first = [seconds(lambda: PostgresStore.open(url).close()) for _ in range(3)]
    other = [seconds(drain) for _ in range(3)]
    print(f"open without a copy, {rows} rows: {np.median(first):.2f} s ({rows / np.median(first):,.0f} rows/s); "
          f"bare COPY of the embeddings {rows / np.median(other):,.0f} rows/s")  # fmt: skip
    PostgresStore.open(f"{url}&copy=keep").close()
    kept = []
    for i in range(5):
        with PostgresStore.open(url) as writer:
            writer.enroll(np.ones((100, DIM)) + i, [f"between {i} {j}" for j in range(100)])
        began = time.perf_counter()
        with PostgresStore.open(f"{url}&copy=keep") as store:
            store.subject("single 0")
            kept.append(time.perf_counter() - began)
    print(f"open a kept copy, 100 rows behind: {np.median(kept):.3f} s")


def erasure(store: PostgresStore, url: str, rng: np.random.Generator) -> None:
    """One subject is erased while another process's store enrols one after the other."""
    stop = threading.Event()
    taken: list[tuple[float, float]] = []

    def write(other: PostgresStore) -> None:
        while not stop.is_set():
            x, name = rng.standard_normal((1, DIM)), f"meanwhile {len(taken)}"
            taken.append((time.perf_counter(), seconds(other.enroll, x, [name])))

    with PostgresStore.open(url) as other:
        writing = threading.Thread(target=write, args=(other,))
        writing.start()
        time.sleep(1)
        idle = max(took for _, took in taken)
        began = time.perf_counter()
        took = seconds(store.erase, ["subject 7"])
        stop.set()
        writing.join()
    longest = max(waited for at, waited in taken if at + waited > began)
    print(f"erase one: {took:.2f} s; the longest enrolment meanwhile {longest:.2f} s, {idle:.2f} s before")


def main() -> None:
    import pgserver

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=10)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["HOLUE_CACHE"] = cache
        server = pgserver.get_server(Path(tempfile.mkdtemp(prefix="measure-")), cleanup_mode="delete")
        url = f"{server.get_uri()}&gallery=measured"
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as bare:
                with PostgresStore.create(url, dim=DIM) as store:
                    enrolment(store, bare, given.batches, rng)
                opening(url, bare, given.batches * BATCH + SINGLES)
                with PostgresStore.open(url) as store:
                    erasure(store, url, rng)
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
