"""SIMD vectors: pieces of generated code that work on vectors of eight numbers.

They are written out because the compiler would choose another form for sums whose roundings are bounded, or none at all.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# Code that generates code has no Python types to check.

from __future__ import annotations

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils

VECTOR_LENGTH = 8
INT32, INT64 = ir.IntType(32), ir.IntType(64)
FLOATS, INTS = ir.VectorType(ir.FloatType(), VECTOR_LENGTH), ir.VectorType(INT32, VECTOR_LENGTH)
CONTRACT = ("contract",)

POWER_POLYNOMIAL = (
    1.0,
    0.6931470036506653,
    0.24022242426872253,
    0.05550733581185341,
    0.009671512991189957,
    0.001326472731307149,
)
"""Of 2^f: the least relative error of degree 5 on [−½, ½] with 2^0 = 1, which is 9e-8."""
_ROUNDER = 1.5 * 2**23  # added to a small float32 it rounds it, and its lowest bits become the whole number
_FRACTION_BITS = 23  # of the float32 format


def constant(value):
    """A vector of one float32, repeated."""
    return ir.Constant(FLOATS, [float(np.float32(value))] * VECTOR_LENGTH)


def shuffle(builder, vector, order):
    """Some elements of a vector, in that order."""
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(INT32, len(order)), order))


def broadcast(builder, number):
    """A vector of one number, repeated."""
    kind = ir.VectorType(number.type, VECTOR_LENGTH)
    return shuffle(
        builder, builder.insert_element(ir.Constant(kind, ir.Undefined), number, INT32(0)), [0] * VECTOR_LENGTH
    )


def load(builder, start, at, kind):
    """A vector that begins at element ``at``, at whatever address."""
    return builder.load(builder.bitcast(builder.gep(start, [at]), kind.as_pointer()), align=1)


def save(builder, vector, start, at):
    """Write a vector from element ``at`` on, at whatever address."""
    builder.store(vector, builder.bitcast(builder.gep(start, [at]), vector.type.as_pointer()), align=1)


def prefetch(builder, start, bytes_ahead):
    """Prefetch the cache line that lies some bytes ahead of an address."""
    address = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [address, INT32, INT32, INT32])
    prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    line = builder.gep(builder.bitcast(start, address), [INT64(bytes_ahead)])
    builder.call(prefetch, [line, INT32(0), INT32(3), INT32(1)])  # to read, into every cache, as data


def maximum(builder, left, right):
    """The greater of two vectors, element by element."""
    condition = builder.fcmp_ordered(">", left, right, flags=("fast",))
    return builder.select(condition, left, right, flags=("fast",))


def any_above(builder, vectors, bar):
    """Whether any element of four vectors is above that of ``bar``."""
    a, b, c, d = vectors
    best = maximum(builder, maximum(builder, a, b), maximum(builder, c, d))
    flags = builder.bitcast(builder.fcmp_ordered(">", best, bar), ir.IntType(VECTOR_LENGTH))
    return builder.icmp_unsigned("!=", flags, ir.IntType(VECTOR_LENGTH)(0))


def multiply_add(builder, x, y, z):
    """``xy + z``, in one rounding where the processor can."""
    return builder.fadd(builder.fmul(x, y, flags=CONTRACT), z, flags=CONTRACT)


def powers_of_two(builder, slope, vectors):
    """``2^{slope·x}`` of several vectors, step by step side by side, so that none waits for its own last step.

    ``slope·x`` is in −125 … 0. Its whole part is added to the exponent bits of the polynomial of the rest.
    """
    rounder, bits = constant(_ROUNDER), ir.Constant(INTS, [_FRACTION_BITS] * VECTOR_LENGTH)
    rounded = [multiply_add(builder, slope, x, rounder) for x in vectors]
    whole = [builder.fsub(x, rounder) for x in rounded]
    exponent = [builder.fmul(slope, x, flags=CONTRACT) for x in vectors]
    f = [builder.fsub(x, y, flags=CONTRACT) for x, y in zip(exponent, whole)]
    fraction = [constant(POWER_POLYNOMIAL[-1]) for _ in f]
    for coefficient in POWER_POLYNOMIAL[-2::-1]:
        fraction = [multiply_add(builder, x, y, constant(coefficient)) for x, y in zip(fraction, f)]
    power = [builder.shl(builder.bitcast(x, INTS), bits) for x in rounded]
    raised = [builder.add(x, builder.bitcast(y, INTS)) for x, y in zip(power, fraction)]
    return [builder.bitcast(x, FLOATS) for x in raised]


def add_across(builder, vector):
    """The sum of a vector, of floating point or whole numbers, in one order: halves, quarters, neighbours."""
    add = builder.add if isinstance(vector.type.element, ir.IntType) else builder.fadd
    for distance in (4, 2, 1):
        vector = add(
            vector, shuffle(builder, vector, [(place + distance) % VECTOR_LENGTH for place in range(VECTOR_LENGTH)])
        )
    return builder.extract_element(vector, INT32(0))


def add_each(builder, vectors):
    """The sum of each of four vectors or of eight, as one vector of four or eight."""
    add = builder.fadd if vectors[0].type == FLOATS else builder.add

    def halves(left, right, low, high):
        orders = (ir.Constant(ir.VectorType(INT32, len(order)), order) for order in (low, high))
        return add(*(builder.shuffle_vector(left, right, order) for order in orders))

    neighbours = [0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]
    pairs = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]
    twos = [halves(a, b, *neighbours) for a, b in zip(vectors[::2], vectors[1::2])]
    fours = [halves(a, b, *pairs) for a, b in zip(twos[::2], twos[1::2])]
    first, last = fours[0], fours[-1]
    if len(fours) == 1:
        return halves(first, last, [0, 1, 2, 3], [4, 5, 6, 7])
    return halves(first, last, [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15])


def transposed(builder, rows):
    """Eight vectors of eight as the eight vectors across them: three times each of the first four is mixed with its partner."""
    low, high = ([place for pair in range(first, first + 4) for place in (pair, pair + 8)] for first in (0, 4))
    for _ in range(3):
        pairs = [(rows[number], rows[number + 4]) for number in range(4)]
        rows = [builder.shuffle_vector(a, b, ir.Constant(INTS, order)) for a, b in pairs for order in (low, high)]
    return rows


def row_starts(context, builder, kind, array, first, count, limit=None):
    """Where ``count`` rows of a contiguous matrix begin in memory, from ``first``; past ``limit`` that row stands in.

    And the matrix's width.
    """
    view = context.make_array(kind)(context, builder, array)
    width = cgutils.unpack_tuple(builder, view.shape)[1]
    starts = []
    for number in range(count):
        row = builder.add(first, INT64(number))
        if limit is not None:
            row = builder.select(builder.icmp_signed("<", row, limit), row, limit)
        starts.append(builder.gep(view.data, [builder.mul(row, width)]))
    return starts, width
