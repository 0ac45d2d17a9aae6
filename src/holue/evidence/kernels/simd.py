"""SIMD vectors: pieces of generated code that work on vectors of eight numbers.

They are written out because the compiler would choose another form for sums whose roundings are bounded, or none at all.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# Code that generates code has no Python types to check.

from __future__ import annotations

import platform
from functools import cache, partial, reduce

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba.core import cgutils

VECTOR_LENGTH = 8
INT32, INT64 = ir.IntType(32), ir.IntType(64)
FLOATS, INTS = ir.VectorType(ir.FloatType(), VECTOR_LENGTH), ir.VectorType(INT32, VECTOR_LENGTH)

LONG_VECTOR_LENGTH = 16 if binding.get_host_cpu_features().get("avx512f") else VECTOR_LENGTH
"""For loops whose result is the same for every length: as long as the processor has them."""

POWER_POLYNOMIAL = (
    1.0,
    0.6931470036506653,
    0.24022242426872253,
    0.05550733581185341,
    0.009671512991189957,
    0.001326472731307149,
)
"""Of 2^f: the least relative error of degree 5 on [−½, ½] with 2^0 = 1, which is 9e-8."""
ROUNDER = 1.5 * 2**23
"""Added to a small float32 it rounds it, and its lowest bits become the whole number."""
_FRACTION_BITS = 23  # of the float32 format


def constant(value, length=VECTOR_LENGTH):
    """A vector of one float32, repeated."""
    return ir.Constant(ir.VectorType(ir.FloatType(), length), [float(np.float32(value))] * length)


def shuffle(builder, vector, order):
    """Some elements of a vector, in that order."""
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(INT32, len(order)), order))


def broadcast(builder, number, length=VECTOR_LENGTH):
    """A vector of one number, repeated."""
    kind = ir.VectorType(number.type, length)
    return shuffle(builder, builder.insert_element(ir.Constant(kind, ir.Undefined), number, INT32(0)), [0] * length)


def load(builder, start, at, kind):
    """A vector that begins at element ``at``, at whatever address."""
    return builder.load(builder.bitcast(builder.gep(start, [at]), kind.as_pointer()), align=1)


def load_some(builder, start, at, end, kind):
    """A vector of float32 that begins at element ``at``: the elements before ``end``, and zeros; and which are before it."""
    length = kind.count
    places = ir.Constant(ir.VectorType(INT64, length), list(range(length)))
    some = builder.icmp_signed("<", places, broadcast(builder, builder.sub(end, at), length))
    address = builder.bitcast(builder.gep(start, [at]), kind.as_pointer())
    signature = ir.FunctionType(kind, [address.type, INT32, some.type, kind])
    masked_load = cgutils.get_or_insert_function(builder.module, signature, f"llvm.masked.load.v{length}f32.p0")
    return builder.call(masked_load, [address, INT32(4), some, constant(0.0, length)]), some


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
    """Whether any element of some vectors is above that of ``bar``."""
    best = reduce(partial(maximum, builder), vectors)
    bits = ir.IntType(best.type.count)
    return builder.icmp_unsigned("!=", builder.bitcast(builder.fcmp_ordered(">", best, bar), bits), bits(0))


@cache
def _fuses() -> bool:
    """Whether the processor multiplies and adds in one instruction."""
    return bool(binding.get_host_cpu_features().get("fma")) or platform.machine() in ("aarch64", "arm64")


def multiply_add(builder, x, y, z):
    """``xy + z``, in one rounding where the processor can.

    Written out: left to the compiler, whether it is one rounding or two depends on what else uses the product.
    """
    if not _fuses():
        return builder.fadd(builder.fmul(x, y), z)
    kind = ir.FunctionType(x.type, [x.type] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{x.type.count}f32"), [x, y, z])


def powers_of_two(builder, slope, vectors, rounder=None):
    """``2^{slope·x}`` of several vectors, step by step side by side, so that none waits for its own last step.

    ``slope·x`` is in −125 … 0. Its whole part is added to the exponent bits of the polynomial of the rest. With the rounder
    ``ROUNDER − E`` it is ``2^{slope·x − E}``, for a whole number ``E`` of up to 22 bits, and ``slope·x − E`` is in −125 … 0.
    """
    kind, length = vectors[0].type, vectors[0].type.count
    ints = ir.VectorType(INT32, length)
    rounder = constant(ROUNDER, length) if rounder is None else rounder
    bits = ir.Constant(ints, [_FRACTION_BITS] * length)
    rounded = [multiply_add(builder, slope, x, rounder) for x in vectors]
    whole = [builder.fsub(x, rounder) for x in rounded]
    f = [multiply_add(builder, slope, x, builder.fneg(y)) for x, y in zip(vectors, whole)]
    fraction = [constant(POWER_POLYNOMIAL[-1], length) for _ in f]
    for coefficient in POWER_POLYNOMIAL[-2::-1]:
        fraction = [multiply_add(builder, x, y, constant(coefficient, length)) for x, y in zip(fraction, f)]
    power = [builder.shl(builder.bitcast(x, ints), bits) for x in rounded]
    raised = [builder.add(x, builder.bitcast(y, ints)) for x, y in zip(power, fraction)]
    return [builder.bitcast(x, kind) for x in raised]


def add_across(builder, vector):
    """The sum of a vector, of floating point or whole numbers, in one order: halves, quarters, and so on to neighbours."""
    add = builder.add if isinstance(vector.type.element, ir.IntType) else builder.fadd
    distance, length = vector.type.count // 2, vector.type.count
    while distance:
        vector = add(vector, shuffle(builder, vector, [(place + distance) % length for place in range(length)]))
        distance //= 2
    return builder.extract_element(vector, INT32(0))


def add_across_each(builder, vectors):
    """``add_across`` of each of two, four or more vectors of floating point numbers, as one vector; the same bits."""
    left = vectors[0].type.count  # elements of each that are still to be added
    while left > 1:
        pairs = list(zip(vectors[::2], vectors[1::2])) or [(vectors[0], ir.Constant(vectors[0].type, ir.Undefined))]
        places = range(vectors[0].type.count * min(len(vectors), 2))
        low = [place for place in places if place % left < left // 2]
        high = [place + left // 2 for place in low]
        orders = [ir.Constant(ir.VectorType(INT32, len(order)), order) for order in (low, high)]
        vectors = [builder.fadd(*(builder.shuffle_vector(a, b, order) for order in orders)) for a, b in pairs]
        left //= 2
    return vectors[0]


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
