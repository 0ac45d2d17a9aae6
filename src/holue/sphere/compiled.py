"""Compiled: inner loops over numbers, turned into machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

import numpy as np
from numba import njit

from holue.sphere.parameters import FloatArray

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


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
