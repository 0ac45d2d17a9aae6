"""A service in a process of its own, as `holue serve` starts it."""

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
from urllib.parse import urlparse

import httpx


@dataclass
class Running:
    """The process, its address, and the key that it printed."""

    process: subprocess.Popen[str]
    address: str
    key: str | None

    def client(self, key: str | None = None) -> httpx.Client:
        return httpx.Client(base_url=self.address, headers={"x-api-key": key or self.key or ""}, timeout=30)

    def connection(self) -> socket.socket:
        """A bare connection, to send what no client sends."""
        at = urlparse(self.address)
        return socket.create_connection((at.hostname or "", at.port or 0), timeout=30)

    def head(self, path: str, length: int, key: str | None = None) -> bytes:
        """The head of a request with a JSON body of a length."""
        lines = [f"POST {path} HTTP/1.1", "host: x", f"x-api-key: {key or self.key}", "content-type: application/json"]
        return "\r\n".join([*lines, f"content-length: {length}", "", ""]).encode()


@contextmanager
def served(place: Path | str | None, *options: str, **limits: Any) -> Iterator[Running]:
    """A running service; limits of the settings by name."""
    given = [] if place is None else [str(place)]
    command = [sys.executable, "-m", "holue", "serve", *given, "--port", "0", "--json", *options]
    set_by = {f"HOLUE_SERVICE_LIMITS_{name.upper()}": str(value) for name, value in limits.items()}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **set_by}
    )
    try:
        assert process.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, "the service ended"
            text += line
        told = json.loads(text)
        yield Running(process, told["address"], told["first_key"])
    finally:
        process.kill()
        process.wait()


def ready(client: httpx.Client) -> None:
    for _ in range(400):
        with suppress(httpx.TransportError):
            if client.get("/readyz").status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError("the service is not ready")
