"""Heads: the request line and headers of a request are held to a size and a time, before anybody is asked for a key."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
"""The longest request line with all headers. The packet with their first byte is not counted."""
HEAD_SECONDS = 30.0
"""The time in which the request line and the headers have to arrive."""
TOO_LARGE, TOO_SLOW = b"431 Request Header Fields Too Large", b"408 Request Timeout"


class BoundedHeads(HttpToolsProtocol):
    """uvicorn's protocol with limits on heads: without them it keeps all that arrives until a head ends, from anybody."""

    _in_head = False
    _head = 0  # bytes of a head that has not ended
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """A client has connected, and is to send a head."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has left."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what has arrived."""
        before = self._in_head
        super().data_received(data)
        if before and self._in_head:
            self._head += len(data)
            if self._head > HEAD_BYTES:
                self._refuse(TOO_LARGE)

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        self._in_head, self._head = True, 0
        self._expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self._in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def _expect_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._refuse, TOO_SLOW)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: bytes) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
