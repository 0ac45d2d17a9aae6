"""The glyph world is drawn alike every time, wherever a sample comes in the order, and its parts share no glyph."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from holue.datasets.degradation import ImageLevels
from holue.datasets.glyphs.identities import glyphs
from holue.datasets.glyphs.rendering import SIZE, Variation, fits, render
from holue.datasets.glyphs.samples import GLYPH_LEVELS, draw_samples
from holue.datasets.glyphs.world import GlyphWorld, glyph_world, glyphs_for
from holue.errors import InvalidParameterError


@pytest.fixture(scope="module")
def world() -> GlyphWorld:
    return glyph_world(seed=3, subjects=40, probes_per_glyph=3)


def ink(image: np.ndarray) -> np.ndarray:
    return 255 - image.astype(float)


def centre(image: np.ndarray) -> tuple[float, float]:
    """Across and down."""
    rows, columns = np.indices(image.shape)
    return float((columns * ink(image)).sum() / ink(image).sum()), float((rows * ink(image)).sum() / ink(image).sum())


def test_a_letter_keeps_the_size_and_height_its_font_gives_it() -> None:
    small, large, comma, apostrophe = (render(text) for text in "oO,'")
    assert ink(large).sum() > 1.3 * ink(small).sum()
    assert centre(comma)[1] > centre(apostrophe)[1] + 8
    assert all(abs(centre(image)[0] - (SIZE - 1) / 2) < 1 for image in (small, large, apostrophe))


def test_no_character_is_cut_off() -> None:
    for glyph in glyphs()[::15]:
        for font in glyph.fonts:
            image = render(glyph.drawn_by(font), font)
            edge = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]])
            assert edge.min() == 255, f"{glyph.label} in {font.name}"
            assert image.min() < 200
    assert not fits("‱", glyphs()[0].fonts[0])


def test_variations_move_the_ink_as_they_say() -> None:
    plain = render("H")
    right = render("H", variation=Variation(right=1.5))
    down = render("H", variation=Variation(down=-1.0))
    assert centre(right)[0] - centre(plain)[0] == pytest.approx(1.5, abs=0.1)
    assert centre(down)[1] - centre(plain)[1] == pytest.approx(-1.0, abs=0.1)
    larger = render("H", variation=Variation(scale=1.1))
    assert ink(larger).sum() == pytest.approx(1.21 * ink(plain).sum(), rel=0.03)
    turned = render("-", variation=Variation(rotation=90.0))
    assert np.ptp(np.flatnonzero(ink(turned).sum(axis=1))) > np.ptp(np.flatnonzero(ink(turned).sum(axis=0)))
    wavering = [render("H", variation=Variation(wobble=0.4), rng=np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert (wavering[0] == wavering[1]).all()
    assert (wavering[0] != wavering[2]).any()


def test_the_same_seed_draws_the_same_world_and_another_one_another(world: GlyphWorld) -> None:
    again = glyph_world(seed=3, subjects=40, probes_per_glyph=3)
    assert (again.evaluation.probes.images == world.evaluation.probes.images).all()
    assert (again.development.gallery.sample_id == world.development.gallery.sample_id).all()
    other = glyph_world(seed=4, subjects=40, probes_per_glyph=3)
    assert other.evaluation.probes.images.shape == world.evaluation.probes.images.shape
    assert (other.evaluation.probes.images != world.evaluation.probes.images).any()


def test_a_sample_does_not_depend_on_which_others_are_drawn() -> None:
    some = glyphs()[10:13]
    together = draw_samples(some, 3, seed=1, levels=GLYPH_LEVELS)
    alone = draw_samples(some[1:2], 1, seed=1, levels=GLYPH_LEVELS, first=2)
    assert (together.images[5] == alone.images[0]).all()
    assert together.sample_id[5] == alone.sample_id[0]


def test_no_glyph_is_in_two_parts_nor_among_those_that_train(world: GlyphWorld) -> None:
    parts = [world.development, world.evaluation]
    labels = [{glyph.label for glyph in (*part.known, *part.unknown)} for part in parts]
    assert not labels[0] & labels[1]
    training = {text for role in ("network", "heads") for glyph in glyphs_for(role) for text in glyph.characters}
    assert not (labels[0] | labels[1]) & training
    for part in parts:
        assert set(part.gallery.subject_id) == {glyph.label for glyph in part.known}
        assert set(part.probes.subject_id) == {glyph.label for glyph in (*part.known, *part.unknown)}
        assert not set(part.gallery.sample_id) & set(part.probes.sample_id)


def test_levels_are_recorded_and_degrade(world: GlyphWorld) -> None:
    probes = world.evaluation.probes
    assert {size for level in probes.level for size in level.split(", ")[:1]} == {
        f"{size} px" for size in GLYPH_LEVELS.sizes
    }
    assert set(world.evaluation.gallery.level) == {"clean"}
    some = glyphs()[100:140]
    clean, small = (
        draw_samples(some, 1, seed=0, levels=ImageLevels((size,), (1,), (1,), (0.1,), sizes_only=1.0))
        for size in (32, 8)
    )
    assert (clean.images == draw_samples(some, 1, seed=0).images).all()
    assert small.images.std() < 0.8 * clean.images.std()


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="no drawing for '一'"):
        render("一")
    with pytest.raises(InvalidParameterError, match="subjects must be 2 to"):
        glyph_world(subjects=5000)
    with pytest.raises(InvalidParameterError, match="at least 1 sample"):
        draw_samples(glyphs()[:1], 0, seed=0)
    with pytest.raises(InvalidParameterError, match="scale"):
        Variation(scale=0)
