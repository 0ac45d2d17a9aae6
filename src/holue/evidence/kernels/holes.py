"""Holes: the columns of those who have left, filled with others before the scores of a chunk are summed.

No score is low enough to weigh nothing at every sharpness, so who has left is taken out. Moving columns from the end of the chunk
to where somebody has left copies few of them; the order within a chunk does not matter.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from holue.evidence.kernels.set_bits import first_bit
from holue.evidence.kernels.simd import load, prefetch
from holue.sphere.compiled import njit

_FLAGS = 32
"""Rows whose flags are read at once."""
_AHEAD = 512
"""Rows whose flags are prefetched: those of the next chunk. A scan reads so many rows between two chunks that they have left the
cache, and the processor does not foresee that they come."""


def holes_scratch(width: int) -> npt.NDArray[np.int64]:
    """A scratch buffer for so many columns: which move where, and the numbers of who is left."""
    return np.empty((3, width), dtype=np.int64)


@intrinsic
def _flags(typing_context, gone, at):
    """Which of the 32 rows from ``at`` on have left, as bits."""

    def generate(context, builder, signature, arguments):
        gone, at = arguments
        start = context.make_array(signature.args[0])(context, builder, gone).data
        prefetch(builder, builder.gep(start, [at]), _AHEAD)
        some = load(builder, start, at, ir.VectorType(ir.IntType(8), _FLAGS))
        set_ = builder.icmp_unsigned("!=", some, ir.Constant(some.type, [0] * _FLAGS))
        return builder.bitcast(set_, ir.IntType(_FLAGS))

    return types.uint32(gone, types.intp), generate


@njit(cache=True, nogil=True)
def find_holes(gone, begin, width, holes):
    """How many of the rows ``begin .. begin + width`` have not left, and how many columns of their scores have to move.

    Column ``holes[1, k]`` moves to ``holes[0, k]``, where somebody has left; afterwards those who have not are the first columns.
    """
    if gone.shape[0] == 0:
        return width, 0
    n_gone, whole = 0, width - width % _FLAGS
    for j in range(0, whole, _FLAGS):
        left = _flags(gone, begin + j)
        while left:
            holes[2, n_gone] = j + first_bit(left)
            left &= left - np.uint32(1)
            n_gone += 1
    for j in range(whole, width):
        if gone[begin + j]:
            holes[2, n_gone] = j
            n_gone += 1
    count = width - n_gone
    moves, last, last_gone = 0, width - 1, n_gone - 1
    while moves < n_gone and holes[2, moves] < count:
        while holes[2, last_gone] == last:
            last -= 1
            last_gone -= 1
        holes[0, moves], holes[1, moves] = holes[2, moves], last
        moves += 1
        last -= 1
    return count, moves


@njit(cache=True, nogil=True)
def fill_holes(values, begin, count, holes, moves, filled):
    """Write the values of the rows from ``begin`` on that have not left, in the order of the moved columns."""
    for k in range(count):
        filled[k] = values[begin + k]
    for k in range(moves):
        filled[holes[0, k]] = values[begin + holes[1, k]]


@njit(cache=True, nogil=True)
def move_columns(scores, holes, moves):
    """Move the columns of those who have not left to where somebody has."""
    for i in range(scores.shape[0]):
        for k in range(moves):
            scores[i, holes[0, k]] = scores[i, holes[1, k]]
