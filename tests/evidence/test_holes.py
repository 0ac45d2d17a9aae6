import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.evidence.block import NOBODY, Block, cut
from holue.evidence.kernels.holes import fill_holes, find_holes, holes_scratch, move_columns


@settings(deadline=None)  # the first call loads the compiled loops
@given(st.lists(st.booleans(), min_size=1, max_size=130), st.integers(0, 5))
def test_who_has_not_left_is_moved_to_the_first_columns_and_nobody_twice(gone: list[bool], before: int) -> None:
    mask = np.array([True] * before + gone)
    holes, width = holes_scratch(len(gone)), len(gone)
    values = np.arange(100, 100 + len(mask))
    scores = np.tile(values[before:].astype(np.float32), (2, 1))
    count, moves = find_holes(mask, before, width, holes)
    assert count == width - sum(gone)
    filled = np.full(width, -1)
    fill_holes(values, before, count, holes, moves, filled)
    move_columns(scores, holes, moves)
    living = values[~mask]
    assert sorted(filled[:count].tolist()) == living.tolist()
    np.testing.assert_array_equal(scores[:, :count], np.tile(filled[:count], (2, 1)))
    assert moves <= min(count, width - count), "no more columns move than have to"


def test_where_nobody_has_left_nothing_moves() -> None:
    assert find_holes(NOBODY, 3, 5, holes_scratch(0)) == (5, 0)


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**32 - 1)
)
def test_cutting_blocks_keeps_everybody_once(sizes: list[int], size: int, workers: int, seed: int) -> None:
    rng, start, blocks = np.random.default_rng(seed), 0, []
    for n in sizes:
        gone = rng.random(n) < 0.5 if rng.random() < 0.7 else NOBODY
        blocks.append(Block(np.zeros((n, 1)), np.arange(start, start + n), gone))
        start += n
    seen: list[int] = []
    for worker in range(workers):
        for block in cut(blocks, worker * start // workers, (worker + 1) * start // workers, size):
            assert 0 < block.n_living <= len(block.rows) <= size
            seen += block.numbers[~block.gone].tolist() if len(block.gone) else block.numbers.tolist()
    everybody = [number for b in blocks for number in (b.numbers[~b.gone] if len(b.gone) else b.numbers).tolist()]
    assert seen == everybody
