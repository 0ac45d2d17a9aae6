"""Tiles multiply whole numbers exactly, at every size and at the ends of their range."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.evidence.block import NOBODY
from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.kernels.packed_panels import PANEL_PROBES, PANEL_SUBJECTS, PROBES_PER_PASS
from holue.evidence.quantized.bounded_sums import BoundedSums
from holue.evidence.quantized.code_loops import Span
from holue.evidence.quantized.code_tiles import (
    code_scratch,
    multiply_codes,
    pack_codes,
    pack_probe_codes,
)
from holue.evidence.quantized.kernel import (
    FEW_CODE_PROBES,
    LARGEST_PROBE_CODE,
    CodeKernel,
    TileKernel,
    compressed_kernel_for,
)
from holue.gallery.compressed import LARGEST_CODE, PADDED_TO, compress


def scores_of(
    rows: npt.NDArray[np.int8],
    probes: npt.NDArray[np.int16],
    scales: npt.NDArray[np.float32],
    steps: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """What the tiles find; the rooms hold rubbish where they are not written."""
    n, width = len(rows), rows.shape[1]
    tiles, panels = pack_probe_codes(probes), code_scratch(width)
    panels[:] = 0x7FFF8001
    pack_codes(rows, 0, n, panels)
    every_step = np.full(len(tiles) * PANEL_PROBES, np.nan, dtype=np.float32)
    every_step[: len(probes)] = steps
    every_scale = np.full(CHUNK, np.nan, dtype=np.float32)
    every_scale[:n] = scales
    scores = np.full((len(every_step), CHUNK), np.nan, dtype=np.float32)
    multiply_codes(panels, n, tiles, 0, len(tiles), every_scale, every_step, scores, 0)
    return scores[: len(probes), :n]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([1, 2, PANEL_SUBJECTS - 1, PANEL_SUBJECTS, PANEL_SUBJECTS + 1, 100, CHUNK]),
    st.sampled_from([1, PANEL_PROBES - 1, PANEL_PROBES, PANEL_PROBES + 1, 20]),
    st.sampled_from([1, 2, 5]),
    st.integers(0, 2**32 - 1),
)
def test_tiles_are_the_product_of_the_codes_bit_for_bit(
    n_subjects: int, n_probes: int, sixteens: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    width = PADDED_TO * sixteens
    rows = rng.integers(-LARGEST_CODE, LARGEST_CODE + 1, (n_subjects, width)).astype(np.int8)
    probes = rng.integers(-LARGEST_PROBE_CODE, LARGEST_PROBE_CODE + 1, (n_probes, width)).astype(np.int16)
    scales, steps = (rng.uniform(1e-6, 1, n).astype(np.float32) for n in (n_subjects, n_probes))
    product = probes.astype(np.int64) @ rows.T.astype(np.int64)
    expected = product.astype(np.float32) * (scales * steps[:, None])
    np.testing.assert_array_equal(scores_of(rows, probes, scales, steps), expected)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_codes_fill_32_bits_and_do_not_overflow(sign: int) -> None:
    # 512 coordinates of the largest code of both: 2 130 640 768 of 2 147 483 647.
    rows = np.full((3, 512), LARGEST_CODE, dtype=np.int8)
    probes = np.full((2, 512), sign * LARGEST_PROBE_CODE, dtype=np.int16)
    one = np.ones(3, dtype=np.float32)
    expected = np.float32(sign * 512 * LARGEST_CODE * LARGEST_PROBE_CODE)
    assert (scores_of(rows, probes, one, one[:2]) == expected).all()


@pytest.mark.parametrize("dim", [100, 512, 513, 1000])
def test_probes_are_coded_so_that_no_product_overflows(dim: int) -> None:
    # A probe and a row of equal coordinates have the longest sum there is: all codes at their largest.
    rows = np.full((1, dim), dim**-0.5)
    kernel = compressed_kernel_for(np.repeat(rows, 2, axis=0), compress(rows, "int8"))
    assert isinstance(kernel, CodeKernel)
    longest = int(np.abs(kernel.probes.astype(np.int64)).sum(axis=1).max()) * LARGEST_CODE
    assert longest <= 2**31 - 1
    # And no coarser than that asks for.
    assert longest > 2**30 or np.abs(kernel.probes).max() > LARGEST_PROBE_CODE // 2


@pytest.mark.parametrize("n_probes", [1, PROBES_PER_PASS, PROBES_PER_PASS + 1, 2 * PROBES_PER_PASS + 5])
@pytest.mark.parametrize(("n_subjects", "dim"), [(1, 16), (CHUNK + 17, 33)])
def test_a_tile_kernel_sums_what_the_code_kernel_sums(
    monkeypatch: pytest.MonkeyPatch, n_probes: int, n_subjects: int, dim: int
) -> None:
    rng = np.random.default_rng(dim)
    gallery, probes = rng.normal(size=(n_subjects, dim)), rng.normal(size=(n_probes, dim))
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    probes /= np.linalg.norm(probes, axis=1, keepdims=True)
    compressed = compress(gallery, "int8")
    part = compressed.parts[0]
    seen = []
    for few, kind in ((n_probes, CodeKernel), (0, TileKernel)):
        monkeypatch.setitem(FEW_CODE_PROBES, "int8", few)
        kernel = compressed_kernel_for(probes, compressed)
        assert isinstance(kernel, kind)
        sums = BoundedSums.start(n_probes, np.array([0.0, 20.0, 400.0]), min(n_subjects, 64))
        kernel.add(
            sums, Span(part.codes, part.scales, part.errors, part.numbers, NOBODY, 0, n_subjects), kernel.scratch()
        )
        seen.append(sums)
    for left, right in zip(seen[0].arrays, seen[1].arrays):
        np.testing.assert_array_equal(left, right)
