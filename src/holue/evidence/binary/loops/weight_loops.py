"""Weight loops: what rows that are not listed add to the sums of a probe.

What a row adds to the mass at sharpness ``a`` has, where it is not listed, the estimate

    g = e^{aê − a²σ²(1−t²)/2},        t = ê − aσ² − ⟨c, z⟩

without the bias of the exponential: ``E e^{aê} = e^{as + a²σ²(1−s²)/2}``, and where ``ê`` is drawn to weigh much it lies ``aσ²``
above ``s``. Per probe and sharpness there are five sums, with ``x = ê − aσ²``: ``Σg, Σxg, Σg², Σxg², Σx²g²``.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import math

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.exponential_sums import INDEX
from holue.evidence.kernels.simd import (
    INT64,
    LONG_VECTOR_LENGTH,
    add_across,
    broadcast,
    constant,
    load,
    maximum,
    multiply_add,
    powers_of_two,
)

N_SUMS = 5
MASS, MOMENT, SQUARE_MASS, SQUARE_MOMENT, SQUARE_SECOND_MOMENT = range(N_SUMS)
"""Places of the sums Σg, Σxg, Σg², Σxg² and Σx²g² of a probe at one sharpness."""
LARGEST_SQUARE = 0.8
"""Of ``t``: beyond it the error's law is far from that of a probe across the row, and the weight would not fall."""
SIDE_BY_SIDE = 2
WEIGHED_AT_ONCE = SIDE_BY_SIDE * LONG_VECTOR_LENGTH
"""Rows weighed at once."""
_LOWEST = -120.0  # of a weight's power of two
_LN_2 = math.log(2.0)


def _weigh_vectors_of(generate_rows, n_numbers):
    """Generate the five sums over the first ``end`` rows of some arrays, a multiple of what is weighed side by side.

    ``generate_rows`` generates estimate, variance, base and which are weighed of the vector of rows at a place.
    """

    @intrinsic
    def weigh_vectors(typing_context, first, second, third, fourth, end, a, unit, numbers):
        def generate(context, builder, signature, arguments):
            length = LONG_VECTOR_LENGTH
            starts = [
                context.make_array(own)(context, builder, array).data
                for own, array in zip(signature.args, arguments[:4])
            ]
            a, unit = (broadcast(builder, number, length) for number in arguments[5:7])
            own_numbers = [broadcast(builder, number, length) for number in cgutils.unpack_tuple(builder, arguments[7])]
            slope = builder.fmul(a, constant(1 / _LN_2, length))
            curve = builder.fmul(builder.fmul(a, a), constant(0.5 / _LN_2, length))
            lowest, most = constant(_LOWEST, length), constant(LARGEST_SQUARE, length)
            one, zero = constant(1.0, length), constant(0.0, length)
            sums = [cgutils.alloca_once_value(builder, zero) for _ in range(N_SUMS)]
            for total in sums:
                builder.store(zero, total)
            with cgutils.for_range_slice(builder, INT64(0), arguments[4], INT64(SIDE_BY_SIDE * length)) as (j, _):
                exponents, centres, there = [], [], []
                for number in range(SIDE_BY_SIDE):
                    at = builder.add(j, INT64(number * length))
                    estimate, variance, base, weighed = generate_rows(builder, starts, at, own_numbers)
                    x = multiply_add(builder, builder.fneg(a), variance, estimate)
                    t = builder.fsub(x, base)
                    square = builder.fneg(maximum(builder, builder.fneg(builder.fmul(t, t)), builder.fneg(most)))
                    straight = builder.fmul(slope, builder.fsub(estimate, unit))
                    bend = builder.fmul(curve, variance)
                    exponent = multiply_add(builder, bend, builder.fsub(square, one), straight)
                    exponents.append(builder.select(weighed, maximum(builder, exponent, lowest), lowest))
                    centres.append(x)
                    there.append(weighed)
                for x, power, weighed in zip(centres, powers_of_two(builder, one, exponents), there):
                    g = builder.select(weighed, power, zero)
                    xg = builder.fmul(x, g)
                    for total, term in zip(sums, (g, xg)):
                        builder.store(builder.fadd(builder.load(total), term), total)
                    for total, (left, right) in zip(sums[2:], ((g, g), (g, xg), (xg, xg))):
                        builder.store(multiply_add(builder, left, right, builder.load(total)), total)
            results = [add_across(builder, builder.load(total)) for total in sums]
            return context.make_tuple(builder, signature.return_type, results)

        single = types.float32
        own = types.UniTuple(single, n_numbers)
        return types.UniTuple(single, N_SUMS)(first, second, third, fourth, INDEX, single, single, own), generate

    return weigh_vectors


def _sampled_rows(builder, starts, at, numbers):
    """From sums, weights and deviations: rows whose keys are not above the cut; a negative deviation is nobody's."""
    length = LONG_VECTOR_LENGTH
    floats, shorts = ir.VectorType(ir.FloatType(), length), ir.VectorType(ir.IntType(16), length)
    step, least, base, beta, rounding, z, cut = numbers
    total = builder.uitofp(load(builder, starts[0], at, shorts), floats)
    weight, deviation = (load(builder, start, at, floats) for start in starts[1:3])
    # In the same roundings as a row that is listed: none is both, or neither.
    estimate = builder.fadd(base, builder.fmul(weight, builder.fadd(builder.fmul(step, total), least)))
    key = builder.fadd(builder.fadd(estimate, builder.fmul(z, deviation)), beta)
    variance = builder.fadd(builder.fmul(deviation, deviation), rounding)
    there = builder.fcmp_ordered(">=", deviation, constant(0.0, length))
    return estimate, variance, base, builder.and_(there, builder.fcmp_ordered("<=", key, cut))


def _known_rows(builder, starts, at, numbers):
    """From estimates, variances, bases, and what is above 0 where a row is there."""
    floats = ir.VectorType(ir.FloatType(), LONG_VECTOR_LENGTH)
    estimate, variance, base, there = (load(builder, start, at, floats) for start in starts)
    return estimate, variance, base, builder.fcmp_ordered(">", there, constant(0.0, LONG_VECTOR_LENGTH))


weigh_sampled, weigh_known = _weigh_vectors_of(_sampled_rows, 7), _weigh_vectors_of(_known_rows, 1)
