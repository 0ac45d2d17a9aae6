"""Plain array: one array of numbers or strings in the ``.npy`` format, read only if it is as long as its header claims.

The claim is compared with the bytes that are there before memory is taken for it: a header of a few bytes can claim terabytes.
"""

from __future__ import annotations

import math
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class NotPlainError(ValueError):
    """The bytes are no array, or fewer or more than they claim, or hold objects that would be unpickled (``pickled``)."""

    def __init__(self, message: str, *, pickled: bool = False) -> None:
        super().__init__(message)
        self.pickled = pickled


def write_array(stream: BinaryIO, array: Array) -> None:
    """Write one array, in C order."""
    np.lib.format.write_array(stream, np.asarray(array, order="C"), allow_pickle=False)


def read_array(stream: BinaryIO, n_bytes: int, *, mapped: bool = False) -> Array:
    """The array in a stream of ``n_bytes``, from its start; ``mapped`` leaves the rows on disk until they are used."""
    shape, fortran_order, dtype = _header(stream)
    count, start = math.prod(shape), stream.tell()
    if start + count * dtype.itemsize != n_bytes:
        raise NotPlainError(
            f"its header claims shape {shape} of {dtype}, {count * dtype.itemsize} bytes, and {n_bytes - start} are there"
        )
    try:
        flat = np.memmap(stream, dtype, "r", start, (count,)) if mapped and count else _filled(stream, count, dtype)
        return flat.reshape(shape[::-1]).T if fortran_order else flat.reshape(shape)
    except (ValueError, MemoryError, OverflowError) as error:
        raise NotPlainError(f"shape {shape} of {dtype} is not possible ({error})") from error


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version in ((2, 0), (3, 0)):  # 3 differs in the encoding of field names, which plain arrays do not have
            shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            raise NotPlainError(f"version {version} of the format is not known")
    except NotPlainError:
        raise
    except (ValueError, TypeError, KeyError, SyntaxError, TokenError, EOFError, RecursionError, MemoryError) as error:
        raise NotPlainError(f"it is no .npy file ({error})") from error
    if dtype.hasobject:
        raise NotPlainError("it holds pickled objects, which could run code", pickled=True)
    if dtype.itemsize == 0:
        raise NotPlainError(f"dtype {dtype} takes no space")
    if any(isinstance(edge, bool) or not isinstance(edge, int) or edge < 0 for edge in shape):
        raise NotPlainError(f"its header claims shape {shape}")
    return shape, fortran_order, dtype


def _filled(stream: BinaryIO, count: int, dtype: np.dtype[Any]) -> Array:
    array = np.empty(count, dtype)
    buffer = array.view(np.uint8).data if count else memoryview(b"")
    read = 0
    while read < len(buffer):
        got = stream.readinto(buffer[read:])  # type: ignore[attr-defined]
        if not got:
            raise NotPlainError(f"it ends after {read} of {len(buffer)} bytes")
        read += got
    return array
