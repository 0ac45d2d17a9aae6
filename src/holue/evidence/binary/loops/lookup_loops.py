"""Lookup loops: sums of table entries over the codes of a block of rows, 64 rows at a time.

A shuffle instruction looks up a table for every byte of a vector at once: sixteen entries by four bits of a code, or, where the
processor has AVX-512 VBMI, 64 entries by six bits. Four entries are added in eight bits, and these to two vectors of 16-bit
sums: one of whole pairs of bytes, whose upper byte is taken out at the end, and one of the upper bytes. Where a processor has no
such instruction (or the compiler is told not to use it), a plain loop does the same.

Which coordinates a table adds follows from what is cheap to take out of a code (:func:`coordinates_of`). With six bits, three
bytes give four indices: the lower six bits of each byte, and the upper two bits of all three.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.binary.part import BLOCK_ROWS
from holue.evidence.kernels.simd import INT64, broadcast, load, save, shuffle
from holue.sphere.compiled import njit

PROBES_AT_ONCE, FEWER_AT_ONCE = 4, 2
"""Probes for which the codes of a block are unpacked once: fewer where their tables would not stay in the first-level cache."""
CACHED_TABLES = 16 * 1024
"""Bytes of tables that stay there beside codes and sums."""
TABLES_AT_ONCE = 4
"""Tables whose entries are added in eight bits."""
NO_COORDINATE = -1
_BYTE, _SHORT = ir.IntType(8), ir.IntType(16)


class Lookup(NamedTuple):
    """How a processor looks up: the bytes of a vector (0: a plain loop), the bits of an index, the compiler's instruction."""

    length: int
    bits: int
    instruction: str
    feature: str


LOOKUPS = (
    Lookup(64, 6, "llvm.x86.avx512.permvar.qi.512", "avx512vbmi"),
    Lookup(64, 4, "llvm.x86.avx512.pshuf.b.512", "avx512bw"),
    Lookup(32, 4, "llvm.x86.avx2.pshuf.b", "avx2"),
)
"""The fastest first."""
PLAIN = Lookup(0, 4, "", "")


def _best_lookup() -> Lookup:
    if config.CPU_NAME not in (None, "host") or config.CPU_FEATURES is not None:  # type: ignore[attr-defined]
        return PLAIN
    features = binding.get_host_cpu_features()
    return next((lookup for lookup in LOOKUPS if features.get(lookup.feature)), PLAIN)


LOOKUP = _best_lookup()


def bytes_at_once(bits: int) -> int:
    """Bytes of a code that four indices of so many bits take."""
    return TABLES_AT_ONCE * bits // 8


def coordinates_of(width: int, bits: int) -> npt.NDArray[np.int64]:
    """The coordinates (tables, bits) of a rotated row that each bit of each table's index stands for; −1: of none.

    >>> coordinates_of(64, 4)[:2].tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    >>> coordinates_of(64, 6)[3].tolist()
    [6, 7, 14, 15, 22, 23]
    """
    step = bytes_at_once(bits)
    coordinates = []
    for first in range(0, width // 8, step):
        own = [[8 * byte + bit for bit in range(8)] for byte in range(first, first + step)]
        if bits == 4:
            coordinates += [half for byte in own for half in (byte[:4], byte[4:])]
        else:
            coordinates += [byte[:6] for byte in own] + [[bit for byte in own for bit in byte[6:]]]
    found = np.array(coordinates)
    return np.where(found < width, found, NO_COORDINATE)


def _indices(builder, codes, bits):
    """The four indices in the bytes of vectors of codes; what is above so many bits is ignored or 0."""
    of_bytes, of_shorts = codes[0].type, ir.VectorType(_SHORT, codes[0].type.count // 2)

    def shifted(vector, places):  # there is no shift of bytes: what comes in from the neighbour is masked
        by = broadcast(builder, _SHORT(places), of_shorts.count)
        return builder.bitcast(builder.lshr(builder.bitcast(vector, of_shorts), by), of_bytes)

    def constant(value):
        return broadcast(builder, _BYTE(value), of_bytes.count)

    if bits == 4:
        low = constant(15)
        return [builder.and_(each, low) for vector in codes for each in (vector, shifted(vector, 4))]
    first, second, third = (shifted(vector, places) for vector, places in zip(codes, (6, 4, 2)))
    two = builder.or_(builder.and_(first, constant(3)), builder.and_(second, constant(0xFC)))
    three = builder.or_(builder.and_(two, constant(15)), builder.and_(third, constant(0xF0)))
    return [*codes, three]


def _look_up_for(lookup, count):
    """Generate the sums of ``count`` probes."""
    length, bits, name, _ = lookup
    step, entries = bytes_at_once(bits), 2**bits

    @intrinsic
    def look_up_rows(typing_context, codes, block, tables, i, sums, at):
        """Write the sums of probes ``i ..`` with the rows of a block to ``sums[0 .., at ..]``."""

        def generate(context, builder, signature, arguments):
            _, block, _, i, _, at = arguments
            views = [
                context.make_array(kind)(context, builder, array)
                for kind, array in zip(signature.args[::2], arguments[::2])
            ]
            width = cgutils.unpack_tuple(builder, views[0].shape)[1]
            n_tables = cgutils.unpack_tuple(builder, views[1].shape)[1]
            columns = cgutils.unpack_tuple(builder, views[2].shape)[1]
            start = builder.gep(views[0].data, [builder.mul(block, builder.mul(width, INT64(BLOCK_ROWS)))])
            each = builder.mul(n_tables, INT64(entries))
            held = [
                builder.gep(views[1].data, [builder.mul(builder.add(i, INT64(number)), each)])
                for number in range(count)
            ]
            of_bytes, of_shorts = ir.VectorType(_BYTE, length), ir.VectorType(_SHORT, length // 2)
            table_type = ir.VectorType(_BYTE, entries)
            kind = ir.FunctionType(of_bytes, [of_bytes, of_bytes])
            instruction = cgutils.get_or_insert_function(builder.module, kind, name)
            eight, zero = broadcast(builder, _SHORT(8), length // 2), ir.Constant(of_shorts, [0] * (length // 2))
            last = builder.sub(width, INT64(1))
            rounds = builder.udiv(n_tables, INT64(TABLES_AT_ONCE))

            def entry(table, place, index):
                own = load(builder, table, place, table_type)
                if entries < length:
                    own = shuffle(builder, own, list(range(entries)) * (length // entries))
                return builder.call(instruction, [own, index])

            for half in range(0, BLOCK_ROWS, length):
                both = [[cgutils.alloca_once_value(builder, zero) for _ in range(2)] for _ in range(count)]
                for pair in both:
                    for total in pair:
                        builder.store(zero, total)
                with cgutils.for_range_slice(builder, INT64(0), rounds, INT64(1)) as (j, _):
                    packed = []
                    for number in range(step):
                        byte = builder.add(builder.mul(j, INT64(step)), INT64(number))
                        if 8 % step:  # a code may end within: tables of no coordinate add 0, whatever the byte
                            byte = builder.select(builder.icmp_signed("<", byte, last), byte, last)
                        place = builder.add(builder.mul(byte, INT64(BLOCK_ROWS)), INT64(half))
                        packed.append(load(builder, start, place, of_bytes))
                    wanted = _indices(builder, packed, bits)
                    first = builder.mul(j, INT64(TABLES_AT_ONCE * entries))
                    for table, (pairs, uppers) in zip(held, both):
                        found = [
                            entry(table, builder.add(first, INT64(entries * number)), index)
                            for number, index in enumerate(wanted)
                        ]
                        four = builder.add(builder.add(*found[:2]), builder.add(*found[2:]))
                        four = builder.bitcast(four, of_shorts)
                        builder.store(builder.add(builder.load(pairs), four), pairs)
                        builder.store(builder.add(builder.load(uppers), builder.lshr(four, eight)), uppers)
                for number, (pairs, uppers) in enumerate(both):
                    row = builder.gep(views[2].data, [builder.add(builder.mul(INT64(number), columns), at)])
                    second = builder.load(uppers)
                    save(builder, builder.sub(builder.load(pairs), builder.shl(second, eight)), row, INT64(half // 2))
                    save(builder, second, row, INT64(BLOCK_ROWS // 2 + half // 2))
            return context.get_dummy_value()

        return types.void(codes, types.intp, tables, types.intp, sums, types.intp), generate

    return look_up_rows


def look_up_with(lookup, **options):
    """A compiled function like :func:`add_entries` for a way to look up.

    Some probes read all blocks before the next do: their tables stay in the first-level cache, the blocks in the second.
    """
    one, few, several = (_look_up_for(lookup, count) for count in (1, FEWER_AT_ONCE, PROBES_AT_ONCE))

    @njit(nogil=True, **options)
    def look_up_each(codes, block, blocks, tables, first, last, sums):
        held = PROBES_AT_ONCE * tables.shape[1] * tables.shape[2]
        count = PROBES_AT_ONCE if held <= CACHED_TABLES else FEWER_AT_ONCE
        end = last - (last - first) % count
        for i in range(first, end, count):
            for number in range(blocks):
                if count == PROBES_AT_ONCE:
                    several(codes, block + number, tables, i, sums[i - first :], number * BLOCK_ROWS)
                else:
                    few(codes, block + number, tables, i, sums[i - first :], number * BLOCK_ROWS)
        for i in range(end, last):
            for number in range(blocks):
                one(codes, block + number, tables, i, sums[i - first :], number * BLOCK_ROWS)

    return look_up_each


@njit(cache=True, nogil=True)
def add_entries(codes, block, blocks, tables, first, last, sums):
    """Write the sums of probes ``first .. last`` with the rows of some blocks to ``sums[0 .., 0 ..]``, entry by entry."""
    six = tables.shape[2] == 64
    width, step = codes.shape[1], 3 if six else 2
    index = np.empty(TABLES_AT_ONCE, dtype=np.int64)
    sums[: last - first, : blocks * BLOCK_ROWS] = 0
    for at in range(blocks * BLOCK_ROWS):
        own, row = codes[block + at // BLOCK_ROWS], at % BLOCK_ROWS
        place = 2 * row if row < BLOCK_ROWS // 2 else 2 * row - BLOCK_ROWS + 1
        for j in range(tables.shape[1] // TABLES_AT_ONCE):
            a = own[min(step * j, width - 1), place]
            b = own[min(step * j + 1, width - 1), place]
            if six:
                c = own[min(step * j + 2, width - 1), place]
                index[0], index[1], index[2] = a & 63, b & 63, c & 63
                index[3] = (a >> 6) | (b >> 6 << 2) | (c >> 6 << 4)
            else:
                index[0], index[1], index[2], index[3] = a & 15, a >> 4, b & 15, b >> 4
            for i in range(first, last):
                for number in range(TABLES_AT_ONCE):
                    sums[i - first, at] += tables[i, TABLES_AT_ONCE * j + number, index[number]]


look_up = look_up_with(LOOKUP, cache=True) if LOOKUP.length else add_entries
