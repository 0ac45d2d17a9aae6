"""Packed: a question to a shard, or its answer, as bytes: a header in JSON and the arrays behind it.

Ray takes each argument of a call by itself, and bytes the quickest: as arrays and names a question cost the process that asks
half as much again. Arguments under 100 kB travel with the call, larger ones through the object store, so a long question is cut.
Only the types named here are read back, and no code comes with them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.cluster.shards.absent import Absent
from holue.evidence.evidence import Evidence
from holue.evidence.link import ConvolvedLink, cosine_link, power_link
from holue.evidence.precision import Precision
from holue.evidence.reproducible_sums import ReproducibleSums
from holue.recognition.search.search_report import SearchReport

LARGEST = 64 * 1024
"""Bytes of a piece: Ray passes arguments under 100 kB with the call itself."""
ALIGNMENT = 64
"""Bytes: the header and every array begin at a multiple, so that arrays are read where they lie."""


RECORDS: dict[str, type] = {
    each.__name__: each for each in (Absent, Evidence, Precision, ReproducibleSums, ConvolvedLink, SearchReport)
}
FUNCTIONS: dict[str, Callable[..., Any]] = {each.__name__: each for each in (cosine_link, power_link)}
NAMES = {each: name for name, each in FUNCTIONS.items()}


def whole(value: object) -> bytes:
    """A value as one run of bytes, as an answer is: one that is too long for the call itself goes through the object store."""
    arrays: list[npt.NDArray[Any]] = []
    header = json.dumps(_described(value, arrays), separators=(",", ":")).encode()
    run = [struct.pack("<q", len(header)), header]
    length = 8 + len(header)
    for array in arrays:
        run += [bytes(-length % ALIGNMENT), array.tobytes()]
        length += -length % ALIGNMENT + array.nbytes
    return b"".join(run)


def packed(value: object) -> tuple[bytes, ...]:
    """A value as pieces of bytes, each small enough to travel with a call.

    >>> [len(piece) <= LARGEST for piece in packed(np.zeros(20_000))]
    [True, True, True]
    """
    run = whole(value)
    return tuple(run[first : first + LARGEST] for first in range(0, len(run), LARGEST))


def unpacked(pieces: Sequence[bytes]) -> Any:
    """What was packed; lists come back as tuples, arrays can be written to.

    >>> unpacked(packed(("1@0", 10, None, np.arange(3), float("-inf"))))
    ('1@0', 10, None, array([0, 1, 2]), -inf)
    """
    run = bytearray().join(pieces)
    (length,) = struct.unpack_from("<q", run)
    return _Reader(run, 8 + length).value(json.loads(run[8 : 8 + length]))


def _described(value: object, arrays: list[npt.NDArray[Any]]) -> Any:
    """The value for the header; its arrays are put behind."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": value.dtype.str, "shape": value.shape}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_described(each, arrays) for each in value]
    if is_dataclass(value) and type(value) is RECORDS.get(type(value).__name__):
        told = [_described(getattr(value, field.name), arrays) for field in fields(value)]
        return {"record": type(value).__name__, "fields": told}
    if callable(value) and value in NAMES:
        return {"function": NAMES[value]}
    raise TypeError(
        f"questions to a shard hold numbers, text, arrays and {', '.join(RECORDS)}, got {type(value).__name__}"
    )


class _Reader:
    """The arrays behind a header, in the order in which they were put there."""

    def __init__(self, run: bytearray, place: int) -> None:
        self._run, self._place = run, place

    def value(self, told: Any) -> Any:
        if isinstance(told, list):
            return tuple(map(self.value, told))
        if not isinstance(told, dict):
            return told
        if "record" in told:
            return RECORDS[told["record"]](*map(self.value, told["fields"]))
        if "function" in told:
            return FUNCTIONS[told["function"]]
        return self._array(np.dtype(told["array"]), told["shape"])

    def _array(self, dtype: np.dtype[Any], shape: list[int]) -> npt.NDArray[Any]:
        first = self._place + -self._place % ALIGNMENT
        count = int(np.prod(shape, dtype=np.int64))
        self._place = first + count * dtype.itemsize
        if not count:
            return np.empty(shape, dtype)
        return np.frombuffer(self._run, dtype, count, first).reshape(shape)
