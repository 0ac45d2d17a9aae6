"""Row products: one probe times eight rows of float32, float16 or int8, read one row after another.

A scan of one probe is bound by reading the gallery in memory order. The vectors of eight rows are added up together, which takes
less time than reading them, and the next rows are prefetched. Every score is summed in the same order, so equal rows score
equally and the rounding error can be bounded: ``RUNNING`` vectors of sums, added in pairs, and a vector added by halves.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# Code that generates code has no Python types to check.

from __future__ import annotations

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.simd import (
    FLOATS,
    INT32,
    INT64,
    INTS,
    VECTOR_LENGTH,
    add_each,
    load,
    multiply_add,
    prefetch,
    row_starts,
    save,
    shuffle,
)

RUNNING = 4
"""Running sums of a product, each a vector of eight."""

_LINE = 64  # bytes
_BYTES, _SHORTS = ir.VectorType(ir.IntType(8), 16), ir.VectorType(ir.IntType(16), 16)
_HALVES, _MANY_INTS = ir.VectorType(ir.HalfType(), VECTOR_LENGTH), ir.VectorType(INT32, 16)


def floats(builder, start, at):
    """Eight float32."""
    return load(builder, start, at, FLOATS)


def halves(builder, start, at):
    """Eight float16, read as their bits, in float32."""
    bits = load(builder, start, at, ir.VectorType(ir.IntType(16), VECTOR_LENGTH))
    return builder.fpext(builder.bitcast(bits, _HALVES), FLOATS)


def _float_step(builder, start, probe, at, total):
    """Eight floats: one multiplication that adds."""
    return multiply_add(builder, floats(builder, probe, at), floats(builder, start, at), total)


def _half_step(builder, start, probe, at, total):
    """Eight halves: one conversion, one multiplication that adds."""
    return multiply_add(builder, floats(builder, probe, at), halves(builder, start, at), total)


def _byte_step(builder, start, probe, at, total):
    """Sixteen bytes: products with 16-bit probes, added in pairs, which processors have one instruction for."""
    g = builder.sext(load(builder, start, at, _BYTES), _MANY_INTS)
    x = builder.sext(load(builder, probe, at, _SHORTS), _MANY_INTS)
    product = builder.mul(g, x)
    pairs = builder.add(*(shuffle(builder, product, list(range(odd, 16, 2))) for odd in (0, 1)))
    return builder.add(total, pairs)


# By the type of a row's numbers: the step, how many numbers it takes, of how many bytes each is, and how many bytes ahead
# rows are prefetched, as measured.
_STEPS = {
    types.float32: (_float_step, 8, 4, 512),
    types.uint16: (_half_step, 8, 2, 1024),
    types.int8: (_byte_step, 16, 1, 1024),
}


@intrinsic
def multiply_rows(typing_context, rows, row, last, probes, i, length, scores, j):
    """Products of the eight ``rows`` from ``row`` on with probe ``i``, written to ``scores[i, j..]``.

    They run over the first ``length`` numbers, whole steps; past the ``last`` row that one stands in. float32 and float16 (its
    bits) × float32 are summed in float32; int8 × int16 exactly in 32 bits, and then rounded to float32.
    """
    step, width, size, ahead = _STEPS[rows.dtype]

    def generate(context, builder, signature, arguments):
        rows, row, last, probes, i, length, scores, j = arguments
        starts, _ = row_starts(context, builder, signature.args[0], rows, row, VECTOR_LENGTH, last)
        (probe,), _ = row_starts(context, builder, signature.args[3], probes, i, 1)
        (place,), _ = row_starts(context, builder, signature.args[6], scores, i, 1)
        kind = INTS if step is _byte_step else FLOATS
        zero, add = ir.Constant(kind, [0] * VECTOR_LENGTH), builder.add if kind == INTS else builder.fadd
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(RUNNING)]
        at_once = RUNNING * width
        whole = builder.sub(length, builder.srem(length, INT64(at_once)))
        products = []
        for start in starts:
            for own in sums:
                builder.store(zero, own)
            with cgutils.for_range_slice(builder, INT64(0), whole, INT64(at_once)) as (t, _):
                for line in range(0, at_once * size, _LINE):
                    prefetch(builder, builder.gep(start, [t]), ahead + line)
                for number, own in enumerate(sums):
                    at = builder.add(t, INT64(number * width))
                    builder.store(step(builder, start, probe, at, builder.load(own)), own)
            with cgutils.for_range_slice(builder, whole, length, INT64(width)) as (t, _):
                builder.store(step(builder, start, probe, t, builder.load(sums[0])), sums[0])
            a, b, c, d = (builder.load(own) for own in sums)
            products.append(add(add(a, b), add(c, d)))
        total = add_each(builder, products)
        save(builder, total if kind == FLOATS else builder.sitofp(total, FLOATS), place, j)
        return context.get_dummy_value()

    whole_number = types.intp
    kinds = rows, whole_number, whole_number, probes, whole_number, whole_number, scores, whole_number
    return types.void(*kinds), generate
