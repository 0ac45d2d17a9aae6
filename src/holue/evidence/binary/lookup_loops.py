"""Lookup loops: sums of table entries over the codes of a block of rows, 64 rows at a time.

A shuffle instruction looks up sixteen-entry tables for every byte of a vector at once. Two entries are added in eight bits, and
these to two vectors of 16-bit sums: one of whole pairs of bytes, whose upper byte is taken out at the end, and one of the upper
bytes. Where a processor has no such instruction (or the compiler is told not to use it), a plain loop does the same.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.binary.part import BLOCK_ROWS
from holue.evidence.kernels.simd import INT64, broadcast, load, prefetch, save, shuffle
from holue.sphere.compiled import njit

PROBES_AT_ONCE = 4
"""Probes for which the codes of a block are unpacked once."""
_AHEAD = 4096  # bytes between what is looked up and what is prefetched
_BYTE, _SHORT = ir.IntType(8), ir.IntType(16)
_TABLE = ir.VectorType(_BYTE, 16)


def _shuffled() -> tuple[int, str]:
    """How many bytes this processor looks up at once, and the compiler's name of the instruction; 0 where it has none."""
    if config.CPU_NAME not in (None, "host") or config.CPU_FEATURES is not None:  # type: ignore[attr-defined]
        return 0, ""
    features = binding.get_host_cpu_features()
    if features.get("avx512bw"):
        return 64, "llvm.x86.avx512.pshuf.b.512"
    if features.get("avx2"):
        return 32, "llvm.x86.avx2.pshuf.b"
    return 0, ""


LOOKED_UP, _INSTRUCTION = _shuffled()


def _look_up_for(count):
    """Generate the sums of ``count`` probes."""

    @intrinsic
    def look_up(typing_context, codes, block, tables, i, sums, at):
        """Write the sums of probes ``i ..`` with the rows of a block to ``sums[0 .., at ..]``."""

        def generate(context, builder, signature, arguments):
            _, block, _, i, _, at = arguments
            views = [
                context.make_array(kind)(context, builder, array)
                for kind, array in zip(signature.args[::2], arguments[::2])
            ]
            width = cgutils.unpack_tuple(builder, views[0].shape)[1]
            columns = cgutils.unpack_tuple(builder, views[2].shape)[1]
            size = builder.mul(width, INT64(BLOCK_ROWS))
            start = builder.gep(views[0].data, [builder.mul(block, size)])
            each = builder.mul(width, INT64(32))  # two tables of sixteen bytes for each byte of a code
            held = [
                builder.gep(views[1].data, [builder.mul(builder.add(i, INT64(number)), each)])
                for number in range(count)
            ]
            of_bytes, of_shorts = ir.VectorType(_BYTE, LOOKED_UP), ir.VectorType(_SHORT, LOOKED_UP // 2)
            kind = ir.FunctionType(of_bytes, [of_bytes, of_bytes])
            instruction = cgutils.get_or_insert_function(builder.module, kind, _INSTRUCTION)
            low, eight = broadcast(builder, _BYTE(15), LOOKED_UP), broadcast(builder, _SHORT(8), LOOKED_UP // 2)
            four, zero = broadcast(builder, _SHORT(4), LOOKED_UP // 2), ir.Constant(of_shorts, [0] * (LOOKED_UP // 2))
            for half in range(0, BLOCK_ROWS, LOOKED_UP):
                both = [[cgutils.alloca_once_value(builder, zero) for _ in range(2)] for _ in range(count)]
                for pair in both:
                    for total in pair:
                        builder.store(zero, total)
                with cgutils.for_range_slice(builder, INT64(0), width, INT64(1)) as (j, _):
                    place = builder.add(builder.mul(j, INT64(BLOCK_ROWS)), INT64(half))
                    if half == 0:
                        prefetch(builder, builder.gep(start, [place]), _AHEAD)
                    packed = load(builder, start, place, of_bytes)
                    upper = builder.bitcast(builder.lshr(builder.bitcast(packed, of_shorts), four), of_bytes)
                    wanted = [builder.and_(packed, low), builder.and_(upper, low)]
                    for table, (pairs, uppers) in zip(held, both):
                        found = []
                        for number, index in enumerate(wanted):
                            first = builder.add(builder.mul(j, INT64(32)), INT64(16 * number))
                            own = shuffle(
                                builder, load(builder, table, first, _TABLE), list(range(16)) * (LOOKED_UP // 16)
                            )
                            found.append(builder.call(instruction, [own, index]))
                        two = builder.bitcast(builder.add(*found), of_shorts)
                        builder.store(builder.add(builder.load(pairs), two), pairs)
                        builder.store(builder.add(builder.load(uppers), builder.lshr(two, eight)), uppers)
                for number, (pairs, uppers) in enumerate(both):
                    row = builder.gep(views[2].data, [builder.add(builder.mul(INT64(number), columns), at)])
                    second = builder.load(uppers)
                    first = builder.sub(builder.load(pairs), builder.shl(second, eight))
                    save(builder, first, row, INT64(half // 2))
                    save(builder, second, row, INT64(BLOCK_ROWS // 2 + half // 2))
            return context.get_dummy_value()

        return types.void(codes, types.intp, tables, types.intp, sums, types.intp), generate

    return look_up


_look_up_one, _look_up_several = _look_up_for(1), _look_up_for(PROBES_AT_ONCE)


@njit(cache=True, nogil=True)
def add_entries(codes, block, tables, i, count, sums, at):
    """The sums of probes ``i .. i + count`` with the rows of a block, one lookup after another: what the fast loops give."""
    for number in range(count):
        for row in range(BLOCK_ROWS):
            place = 2 * row if row < BLOCK_ROWS // 2 else 2 * row - BLOCK_ROWS + 1
            total = 0
            for j in range(codes.shape[1]):
                byte = codes[block, j, place]
                total += tables[i + number, 2 * j, byte & 15] + tables[i + number, 2 * j + 1, byte >> 4]
            sums[number, at + row] = total


if LOOKED_UP:

    @njit(cache=True, nogil=True)
    def look_up_block(codes, block, tables, first, last, sums, at):
        """Write the sums of probes ``first .. last`` with the rows of a block to ``sums[0 .., at ..]``."""
        several = last - (last - first) % PROBES_AT_ONCE
        for i in range(first, several, PROBES_AT_ONCE):
            _look_up_several(codes, block, tables, i, sums[i - first :], at)
        for i in range(several, last):
            _look_up_one(codes, block, tables, i, sums[i - first :], at)

else:

    @njit(cache=True, nogil=True)
    def look_up_block(codes, block, tables, first, last, sums, at):
        """Write the sums of probes ``first .. last`` with the rows of a block to ``sums[0 .., at ..]``."""
        add_entries(codes, block, tables, first, last - first, sums, at)


def sums_scratch(n_probes, columns):
    """A buffer for the sums of so many probes with a chunk of rows."""
    return np.empty((n_probes, columns), dtype=np.uint16)
