"""Set bits: which of 32 keys, or of 64 whole numbers, pass a bar, as the bits of a word, and the place of the lowest one."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from holue.evidence.kernels.simd import FLOATS, INT32, INT64, VECTOR_LENGTH, broadcast, load

BITS = 32
"""Keys compared at once."""


@intrinsic
def first_bit(typing_context, bits):
    """The place of the lowest bit that is set, of 32 or 64."""

    def generate(context, builder, signature, arguments):
        place = builder.cttz(arguments[0], ir.IntType(1)(1))
        return place if place.type == INT64 else builder.zext(place, INT64)

    return types.intp(bits if bits == types.uint64 else types.uint32), generate


@intrinsic
def higher(typing_context, keys, at, bar):
    """Which of the 32 keys from ``at`` on are above the bar, as bits."""

    def generate(context, builder, signature, arguments):
        keys, at, bar = arguments
        start = context.make_array(signature.args[0])(context, builder, keys).data
        bar, found = broadcast(builder, bar), INT32(0)
        for first in range(0, BITS, VECTOR_LENGTH):
            some = builder.fcmp_ordered(">", load(builder, start, builder.add(at, INT64(first)), FLOATS), bar)
            bits = builder.zext(builder.bitcast(some, ir.IntType(VECTOR_LENGTH)), INT32)
            found = builder.or_(found, builder.shl(bits, INT32(first)))
        return found

    return types.uint32(keys, types.intp, types.float32), generate


@intrinsic
def higher_of_64(typing_context, sums, at, bar):
    """Which of the 64 sums of 16 bits from ``at`` on are above a bar of 0 … 65535, as bits."""

    def generate(context, builder, signature, arguments):
        sums, at, bar = arguments
        start = context.make_array(signature.args[0])(context, builder, sums).data
        half, bits = 32, ir.IntType(64)
        kind, found = ir.VectorType(ir.IntType(16), half), bits(0)
        bars = broadcast(builder, builder.trunc(bar, ir.IntType(16)), half)
        for first in (0, half):
            some = builder.icmp_unsigned(">", load(builder, start, builder.add(at, INT64(first)), kind), bars)
            own = builder.zext(builder.bitcast(some, ir.IntType(half)), bits)
            found = builder.or_(found, builder.shl(own, bits(first)))
        return found

    return types.uint64(sums, types.intp, types.int32), generate
