"""Listener: a thread that waits for other processes' changes and has the replica follow them."""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress

from holue.store.postgres.address import Address
from holue.store.postgres.local.replica import Replica
from holue.store.postgres.server import Server

HEARTBEAT = 5.0
"""Without a notification the server is asked after so many seconds, so that a lost connection is noticed."""
LONGEST_PAUSE = 2.0


class Listener:
    """Runs until it is stopped; while the server is gone it tries again and again."""

    def __init__(self, address: Address, replica: Replica) -> None:
        self._server, self._replica = Server(address), replica
        self._wake, self._waker = os.pipe()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holue-listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        os.write(self._waker, b"x")
        self._thread.join()
        os.close(self._wake)
        os.close(self._waker)

    def _run(self) -> None:
        pause = 0.05
        while not self._stopped.is_set():
            with suppress(Exception):  # the server is gone; the copy's age says since when
                self._listen()
                pause = 0.05
            self._server.close()
            self._stopped.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _listen(self) -> None:
        """Follow whenever there are news; returns when stopped, raises when the connection is lost."""
        connection = self._server.connect()
        self._server.run(f'LISTEN "{self._server.address.channel}"')
        self._replica.refresh()
        while not self._stopped.is_set():
            ready, _, _ = select.select([connection.fileno(), self._wake], [], [], HEARTBEAT)
            told = [notice.pid for notice in connection.notifies(timeout=0)] if ready else []
            if not ready:
                self._server.run("SELECT 1")
            if not ready or set(told) - {self._replica.server.process}:  # our own changes are in the copy already
                self._replica.refresh()
