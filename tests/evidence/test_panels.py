"""Panels against the plain product: every edge of chunks, panels, tiles and stretches."""

import numpy as np
import numpy.typing as npt
import pytest

from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.kernels.packed_panels import (
    COORDINATE_BLOCK,
    PANEL_PROBES,
    PANEL_SUBJECTS,
    PROBES_PER_PASS,
    multiply_panels,
    pack_panels,
    pack_probes,
    panel_scratch,
)

Float32Array = npt.NDArray[np.float32]


def products(probes: Float32Array, block: Float32Array, begin: int, width: int) -> Float32Array:
    """What the panels find; the rooms hold rubbish where they are not written."""
    tiles, panels = pack_probes(probes), panel_scratch(probes.shape[1], np.float32)
    panels.fill(np.nan)
    scores = np.full((len(tiles) * PANEL_PROBES, CHUNK), np.nan, dtype=np.float32)
    pack_panels(block, begin, width, panels)
    multiply_panels(panels, width, tiles, 0, len(tiles), scores, block, 0)
    # Asking for the rows that follow, or for some beyond the last, changes nothing.
    again = np.full_like(scores, np.nan)
    multiply_panels(panels, width, tiles, 0, len(tiles), again, block, begin + CHUNK)
    np.testing.assert_array_equal(again, scores)
    return scores[: len(probes), :width]


@pytest.mark.parametrize("width", [1, 8, PANEL_SUBJECTS, PANEL_SUBJECTS + 1, 100, CHUNK])
@pytest.mark.parametrize(
    "dim", [1, 7, 8, 9, COORDINATE_BLOCK - 1, COORDINATE_BLOCK, COORDINATE_BLOCK + 3, 2 * COORDINATE_BLOCK]
)
@pytest.mark.parametrize("n_probes", [1, PANEL_PROBES, PANEL_PROBES + 1, PROBES_PER_PASS])
def test_whole_numbers_are_multiplied_exactly(width: int, dim: int, n_probes: int) -> None:
    rng = np.random.default_rng(dim)
    # Whole numbers up to 8 in float32: no sum of 256 products is rounded, in whatever order.
    block = rng.integers(-8, 9, size=(CHUNK + 40, dim)).astype(np.float32)
    probes = rng.integers(-8, 9, size=(n_probes, dim)).astype(np.float32)
    for begin in (0, 40):
        found = products(probes, block, begin, width)
        np.testing.assert_array_equal(found, probes @ block[begin : begin + width].T)


def test_equal_rows_score_equally_wherever_they_stand() -> None:
    rng = np.random.default_rng(0)
    row = rng.normal(size=(1, 300)).astype(np.float32)
    found = products(rng.normal(size=(13, 300)).astype(np.float32), np.tile(row, (CHUNK, 1)), 0, CHUNK - 3)
    assert (found == found[:, :1]).all()


def test_a_panel_begins_where_a_line_of_the_cache_does() -> None:
    for dim in (1, 5, 128):
        assert panel_scratch(dim, np.float32).ctypes.data % 64 == 0
        assert panel_scratch(dim, np.float32).shape == (CHUNK // PANEL_SUBJECTS, dim, PANEL_SUBJECTS)
