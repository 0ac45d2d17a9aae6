"""Peers: what people build otherwise, and a server that does nothing; each is started by ``python -m tests.load.peers NAME``."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import numpy as np
from starlette.requests import Request

TRIVIAL_BYTES = 1500
"""Of the answer of the trivial server: about as many as one of the service's."""


def faiss_app(vectors: str) -> Any:
    """A plain FastAPI service on a FAISS flat index: five nearest subjects for each probe; no keys, no log, no batching."""
    import faiss
    from fastapi import FastAPI

    gallery = np.load(vectors)
    index = faiss.IndexFlatIP(gallery.shape[1])
    index.add(gallery)
    names = [f"s{number}" for number in range(len(gallery))]
    app = FastAPI()

    @app.post("/identify")
    async def identify(request: Request) -> dict[str, Any]:
        probes = np.frombuffer(await request.body(), dtype=np.float32).reshape(-1, gallery.shape[1])
        scores, places = index.search(probes, 5)
        return {
            "answers": [
                [{"subject": names[place], "score": float(score)} for place, score in zip(*row)]
                for row in zip(places, scores)
            ]
        }

    return app


async def trivial(port: int) -> None:
    """Answers every request with the same bytes as soon as it has come: what the generator can do at most."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % TRIVIAL_BYTES + b"x" * TRIVIAL_BYTES

    class Answering(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self._transport, self._left = transport, 0

        def data_received(self, data: bytes) -> None:
            while data:
                if not self._left:
                    head, _, data = data.partition(b"\r\n\r\n")
                    self._left = int(head.rpartition(b":")[2])
                taken = min(self._left, len(data))
                self._left, data = self._left - taken, data[taken:]
                if not self._left:
                    self._transport.write(answer)

    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", port)
    await server.serve_forever()


def main() -> None:
    """Start a peer on a port of this machine."""
    import uvicorn
    import uvloop

    name, port = sys.argv[1], int(sys.argv[2])
    if name == "trivial":
        uvloop.run(trivial(port))
    else:
        uvicorn.run(faiss_app(sys.argv[3]), host="127.0.0.1", port=port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
