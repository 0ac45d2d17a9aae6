"""Shapes turn into one another without fading, and a passage between two glyphs is chosen and ranked as it says."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("PIL")


from holue.datasets.glyphs.fonts import find_font
from holue.datasets.glyphs.identities import Glyph
from holue.datasets.glyphs.morph import ink_kept, morph
from holue.datasets.glyphs.rendering import render
from holue.demo.demo import Demo
from holue.demo.passages import _nearest_pairs, _rank

FONT = find_font("DejaVuSans")


def glyph(text: str) -> Glyph:
    return Glyph((text,), (FONT,))


@pytest.mark.parametrize("text", ["D", "ж", "⇒"])
def test_the_ends_of_a_morph_are_the_two_drawings(text: str) -> None:
    ends = morph(glyph(text), glyph("O"), FONT, np.array([0.0, 1.0]))
    for image, drawn in zip(ends, (render(text), render("O"))):
        # The outline is known to half of a fine pixel, a sixth of one of these.
        assert np.abs(image.astype(float) - drawn).max() <= 255 / 5
        assert np.abs(image.astype(float) - drawn).mean() < 2


def test_a_morph_stays_black_all_the_way() -> None:
    way = morph(glyph("D"), glyph("O"), FONT, np.linspace(0, 1, 9))
    assert (way.min(axis=(1, 2)) < 30).all()
    assert ink_kept(way) > 0.9
    assert ink_kept(morph(glyph("'"), glyph(","), FONT, np.linspace(0, 1, 9))) == 0


def test_a_morph_of_a_glyph_into_itself_stands_still() -> None:
    way = morph(glyph("Ж"), glyph("Ж"), FONT, np.linspace(0, 1, 5))
    assert (way == way[0]).all()


def test_every_glyph_is_paired_with_the_one_most_like_it() -> None:
    cosines = np.array([[1.0, 0.2, 0.9], [0.2, 1.0, 0.4], [0.9, 0.4, 1.0]])
    assert _nearest_pairs(cosines) == [(0, 2), (1, 2)]


def test_ranks_count_the_probes_below_and_half_of_the_ties() -> None:
    assert _rank(np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.0, 2.0, 3.0])).tolist() == [0.0, 0.5, 1.0]


def test_the_probabilities_on_a_passage_are_those_of_the_answers(small_demo: Demo) -> None:
    assert small_demo.passages.all
    for passage in small_demo.passages.all:
        for end, p in ((0, passage.p_first), (-1, passage.p_second)):
            assert p[end] == pytest.approx(1 - passage.uncertainty[end], abs=1e-9)
        assert (passage.p_first + passage.p_second + passage.p_unknown <= 1 + 1e-9).all()
