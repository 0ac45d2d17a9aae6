"""Windows: search files for the bytes of embeddings, wherever in the file and whichever part of an embedding.

A file that holds any 64 successive bytes of a form holds one of its own 32-byte blocks (at offsets 0, 32, 64 …) filled
with 32 successive bytes of that form. So a file is read once, and only its blocks are compared, with the 32-byte windows
at every offset of every form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holue.store.values import Float32Array, Searched

BLOCK = 32
CHUNK = 1 << 24
LEAST_DISTINCT = 8
"""Windows with fewer different bytes (zeros, mostly) say nothing about anybody and are found in every file."""
EMBEDDINGS_AT_ONCE = 100


def forms(embedding: Float32Array) -> list[bytes]:
    """The float32, float16 and int8 bytes of an embedding, as given and as a direction.

    >>> [len(form) for form in forms(np.ones(64, np.float32))]
    [256, 256, 128, 128, 64]
    """
    wide = embedding.astype(np.float64)
    direction = wide / np.linalg.norm(wide)
    codes = np.rint(direction / np.abs(direction).max() * 127).astype(np.int8)
    with np.errstate(over="ignore"):
        kinds = [
            embedding,
            direction.astype(np.float32),
            embedding.astype(np.float16),
            direction.astype(np.float16),
            codes,
        ]
    return [kind.tobytes() for kind in kinds]


def search_files(paths: list[Path], root: Path, embeddings: Float32Array) -> list[Searched]:
    """Every file with its size and the number of its blocks that hold bytes of the embeddings."""
    return search_streams({str(path.relative_to(root)): partial(_read, path) for path in paths}, embeddings)


def search_streams(streams: Mapping[str, Callable[[], Iterator[bytes]]], embeddings: Float32Array) -> list[Searched]:
    """The same for anything that can be read from its beginning in chunks, all but the last a multiple of the block."""
    sizes, found = dict.fromkeys(streams, 0), dict.fromkeys(streams, 0)
    for start in range(0, max(len(embeddings), 1), EMBEDDINGS_AT_ONCE):
        wanted = _Wanted(embeddings[start : start + EMBEDDINGS_AT_ONCE])
        for name, stream in streams.items():
            sizes[name] = 0
            for chunk in stream():
                sizes[name] += len(chunk)
                found[name] += wanted.count(_blocks(chunk))
    return [Searched(name, sizes[name], found[name]) for name in streams]


class _Wanted:
    """Windows to look for: a table of their first three bytes tells most blocks apart from them at once."""

    def __init__(self, embeddings: Float32Array) -> None:
        windows = [_windows(np.frombuffer(form, np.uint8)) for row in embeddings for form in forms(row)]
        joined = np.concatenate([np.empty((0, BLOCK), np.uint8), *windows])
        self._windows = {bytes(window) for window in joined}
        self._table = np.zeros(1 << 24, dtype=bool)
        self._table[_prefix(joined)] = True

    def count(self, blocks: npt.NDArray[np.uint8]) -> int:
        """How many of the blocks are among the windows."""
        likely = blocks[self._table[_prefix(blocks)]]
        return sum(bytes(block) in self._windows for block in likely)


def _prefix(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    words = blocks[:, 8:11].astype(np.uint32)
    return (words[:, 0] | words[:, 1] << 8 | words[:, 2] << 16).astype(np.uint32)


def _windows(form: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    if len(form) < BLOCK:
        return np.empty((0, BLOCK), np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(form, BLOCK)
    ordered = np.sort(windows, axis=1)
    distinct = 1 + (np.diff(ordered, axis=1) != 0).sum(axis=1)
    return np.asarray(windows[distinct >= LEAST_DISTINCT])


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while data := stream.read(CHUNK):
            yield data


def _blocks(data: bytes) -> npt.NDArray[np.uint8]:
    # The last block of a file is filled with zeros, which no window of interest ends in.
    return np.frombuffer(data + bytes(-len(data) % BLOCK), np.uint8).reshape(-1, BLOCK)
