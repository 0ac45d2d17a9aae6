"""Characters come from real fonts, fit their image, and are one subject where no font tells them apart."""

import sys
import unicodedata

import pytest

pytest.importorskip("matplotlib")

import numpy as np

from holue.datasets.glyphs.characters import FEWEST_FONTS, LETTER_PAIRS, glyph_characters
from holue.datasets.glyphs.fonts import find_font, glyph_fonts
from holue.datasets.glyphs.homoglyphs import homoglyphs
from holue.datasets.glyphs.identities import ROLES, glyphs
from holue.datasets.glyphs.rendering import render
from holue.errors import InvalidParameterError, MissingDependencyError


def test_no_font_claims_what_it_cannot_draw() -> None:
    names = {font.name for font in glyph_fonts()}
    assert not any("LastResort" in name or "NonUni" in name or "Siz" in name for name in names)
    assert len({font.family for font in glyph_fonts()}) == 5
    assert not find_font("cmr10").draws("+")  # its place for the sign is not Unicode's
    assert not find_font("DejaVuSans").draws("一")


def test_there_are_thousands_of_characters_in_several_scripts() -> None:
    characters = glyph_characters()
    assert len(characters) > 2000
    scripts = {unicodedata.name(text[0]).split()[0] for text in characters}
    assert {"LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN", "RIGHTWARDS"} <= scripts
    assert set(LETTER_PAIRS) <= set(characters)
    for text in characters[::40]:
        assert sum(font.draws(text) for font in glyph_fonts()) >= FEWEST_FONTS or text in LETTER_PAIRS


def test_homoglyphs_are_found_and_look_alikes_are_not_taken_for_them() -> None:
    group_of = {text: group for group in homoglyphs() for text in group}
    for same in ("AΑА", "OΟО", "oоο", "XΧХ", "cс"):
        assert all(group_of[text] == group_of[same[0]] for text in same)
    for first, second in ("O0", "lI", "l1", "oO", "ʽ,", "mм", "ηƞ", "Éê", "'’", "ⁿn", "⇒→"):
        assert group_of.get(first, (first,)) != group_of.get(second, (second,))


def alike(first: str, second: str) -> bool:
    for font in glyph_fonts():
        if font.draws(first) and font.draws(second):
            one, other = (255 - render(text, font).astype(float) for text in (first, second))
            # Bearings differ, so that the drawings may be up to a pixel apart.
            shifted = (np.roll(other, step, axis=1) for step in (-1, 0, 1))
            if max(np.corrcoef(one.ravel(), some.ravel())[0, 1] for some in shifted) < 0.8:
                return False
    return True


def test_every_homoglyph_is_drawn_like_another_of_its_group_by_every_font() -> None:
    for group in homoglyphs()[::4]:
        for text in group:
            assert any(alike(text, other) for other in group if other != text), (text, group)
    assert not alike("Y", "Υ")  # one group, because Cyrillic Ү is like both


def test_every_character_belongs_to_one_glyph_on_one_side_of_the_split() -> None:
    members = [text for glyph in glyphs() for text in glyph.characters]
    assert sorted(members) == sorted(glyph_characters())
    shares = {role: np.mean([glyph.role == role for glyph in glyphs()]) for role in ROLES}
    # Hashed one by one: the shares are those of 2 600 coins.
    assert shares == pytest.approx(ROLES, abs=0.04)


def test_a_missing_package_and_an_unknown_font_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameterError, match="DejaVuSerif-Italic"):
        find_font("Arial")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match="matplotlib"):
        glyph_fonts.__wrapped__()
