"""Connections: one request at a time to a system under load, over HTTP/1.1 or to PostgreSQL."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Protocol

from .world import Float32Array

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Connection(Protocol):
    """Asks about some probes and waits for the answer."""

    async def ask(self, number: int) -> bool:
        """Send the request with a number; whether the answer was good."""

    async def close(self) -> None:
        """Close the connection."""


class HttpConnection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive over a socket: no more than is needed to count whole answers, so that it costs next to nothing."""

    def __init__(self, requests: list[bytes]) -> None:
        self._requests = requests
        self._transport: Any = None
        self._answered: asyncio.Future[bool] | None = None
        self._received = b""
        self._end: int | None = None  # of the answer, in bytes

    @classmethod
    async def open(cls, host: str, port: int, requests: list[bytes]) -> HttpConnection:
        """A connection to an address."""
        loop = asyncio.get_running_loop()
        _, protocol = await loop.create_connection(lambda: cls(requests), host, port)
        return protocol

    async def ask(self, number: int) -> bool:
        """Send the request with a number; whether the answer was good."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(self._requests[number % len(self._requests)])
        return await self._answered

    async def close(self) -> None:
        """Close the connection."""
        self._answered = None
        self._transport.close()

    def connection_made(self, transport: Any) -> None:
        """Keep where to write."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Collect an answer; it is over when as many bytes have come as its head says."""
        self._received += data
        if self._end is None:
            head = self._received.find(b"\r\n\r\n")
            if head < 0:
                return
            length = _LENGTH.search(self._received, 0, head + 2)
            self._end = head + 4 + (int(length[1]) if length else 0)
        if len(self._received) >= self._end:
            good = self._received[9:12] == b"200"
            self._received, self._end = self._received[self._end :], None
            if self._answered is not None:
                self._answered.set_result(good)

    def connection_lost(self, error: Exception | None) -> None:
        """An answer that does not come any more is not good."""
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(False)


def http_requests(path: str, headers: dict[str, str], probes: Float32Array, batch: int) -> list[bytes]:
    """The bytes of a request for each batch of probes, raw float32."""
    bodies = [probes[first : first + batch].tobytes() for first in range(0, len(probes) - batch + 1, batch)]
    lines = [f"POST {path} HTTP/1.1", "host: localhost", "content-type: application/octet-stream"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join(lines)
    return [f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body for body in bodies]


class VectorConnection:
    """A connection to PostgreSQL with pgvector: the five largest inner products, by an exact scan."""

    QUERY = "SELECT id, embedding <#> %b AS score FROM subjects ORDER BY embedding <#> %b LIMIT 5"

    def __init__(self, connection: Any, probes: list[Any]) -> None:
        self._connection, self._probes = connection, probes

    @classmethod
    async def open(cls, database: str, probes: list[Any]) -> VectorConnection:
        """A connection to a database whose table ``subjects`` holds the vectors."""
        import psycopg
        from pgvector.psycopg import register_vector_async

        connection = await psycopg.AsyncConnection.connect(database, autocommit=True)
        await register_vector_async(connection)
        return cls(connection, probes)

    async def ask(self, number: int) -> bool:
        """Ask about one probe; whether five rows came."""
        probe = self._probes[number % len(self._probes)]
        cursor = await self._connection.execute(self.QUERY, (probe, probe), prepare=True)
        return len(await cursor.fetchall()) == 5

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()
