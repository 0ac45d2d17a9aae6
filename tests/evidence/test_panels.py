"""Panels against the plain product: every edge of chunks, panels, tiles and stretches."""

import numpy as np
import numpy.typing as npt
import pytest

from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.kernels.packed_panels import (
    PROBES_AT_ONCE,
    STRETCH,
    TILE_PROBES,
    TILE_SUBJECTS,
    fill_panels,
    in_tiles,
    multiply_panels,
    panel_room,
)

Float32Array = npt.NDArray[np.float32]


def products(probes: Float32Array, block: Float32Array, begin: int, width: int) -> Float32Array:
    """What the panels find; the rooms hold rubbish where they are not written."""
    tiles, panels = in_tiles(probes), panel_room(probes.shape[1], np.float32)
    panels.fill(np.nan)
    scores = np.full((len(tiles) * TILE_PROBES, CHUNK), np.nan, dtype=np.float32)
    fill_panels(block, begin, width, panels)
    multiply_panels(panels, width, tiles, 0, len(tiles), scores, block, 0)
    # Asking for the rows that follow, or for some beyond the last, changes nothing.
    again = np.full_like(scores, np.nan)
    multiply_panels(panels, width, tiles, 0, len(tiles), again, block, begin + CHUNK)
    np.testing.assert_array_equal(again, scores)
    return scores[: len(probes), :width]


@pytest.mark.parametrize("width", [1, 8, TILE_SUBJECTS, TILE_SUBJECTS + 1, 100, CHUNK])
@pytest.mark.parametrize("dim", [1, 7, 8, 9, STRETCH - 1, STRETCH, STRETCH + 3, 2 * STRETCH])
@pytest.mark.parametrize("n_probes", [1, TILE_PROBES, TILE_PROBES + 1, PROBES_AT_ONCE])
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
        assert panel_room(dim, np.float32).ctypes.data % 64 == 0
        assert panel_room(dim, np.float32).shape == (CHUNK // TILE_SUBJECTS, dim, TILE_SUBJECTS)
