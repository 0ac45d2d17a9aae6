"""Compiled: inner loops over numbers, turned into machine code.

Compiled code is kept in ``NUMBA_CACHE_DIR``, or beside the source, or, where that is read-only, in the user's cache directory.
Take ``njit`` from here, not from numba, which raises where there is no such place.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba import njit as njit

from holue.sphere.parameters import FloatArray

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def find_place() -> bool:
    """Keep compiled code for the life of the process where it cannot be kept for longer (False): each process compiles anew."""
    try:
        njit(cache=True)(find_place)
    except RuntimeError:
        # A private directory, not a shared one: numba runs what it finds there.
        place = tempfile.mkdtemp(prefix="holue-compiled-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        numba.config.CACHE_DIR = place  # type: ignore[attr-defined]
        return False
    return True


kept = find_place()
"""Whether later processes find what this one compiles."""


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile on the first call, keep the result on disk, and let other threads run meanwhile.

    Division by zero and overflow follow IEEE 754, as in numpy; callers see to it that they do not happen.
    Sums keep the order they are written in (no ``fastmath``): the accuracy of the formulas depends on it.
    """
    decorate = njit(cache=True, nogil=True, error_model="numpy")
    return cast(Callable[_Arguments, _Result], decorate(function))


def apply(
    kernel: Callable[Concatenate[FloatArray, _Arguments], FloatArray],
    values: FloatArray,
    *arguments: _Arguments.args,
    **options: _Arguments.kwargs,
) -> FloatArray:
    """Run a compiled loop over an array of any shape, the loop itself knowing only flat ones.

    Read-only arrays are copied: to the compiler they are another type, which would be compiled a second time.

    >>> apply(lambda flat, factor: factor * flat, np.ones((1, 2)), 3.0)
    array([[3., 3.]])
    """
    flat = np.require(values, requirements=["C", "W"]).reshape(-1)
    return kernel(flat, *arguments, **options).reshape(values.shape)
