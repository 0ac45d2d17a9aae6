"""Small marks are shown larger, letters and covered samples as they are."""

import base64
import io

import numpy as np
import pytest

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")

from holue.datasets.glyphs.rendering import render  # noqa: E402
from holue.demo.cards import probe_card  # noqa: E402
from holue.demo.demo import Demo  # noqa: E402
from holue.demo.pictures import INK, Picture, close_up, ink_box  # noqa: E402


def pixels(picture: Picture) -> np.ndarray:
    kind, _, code = picture.address.partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(code))))


@pytest.mark.parametrize("mark", [",", "'", "´", "."])
def test_all_ink_of_a_small_mark_is_in_its_close_up(mark: str) -> None:
    clean = render(mark)
    picture = close_up(clean, clean)
    assert picture.zoom == 2
    shown = pixels(picture)
    assert shown.shape == (16, 16)
    assert (shown < INK).sum() == (clean < INK).sum()


@pytest.mark.parametrize("letter", ["o", "O", "x", ":", "—"])
def test_letters_are_shown_whole_so_that_their_size_can_be_compared(letter: str) -> None:
    clean = render(letter)
    picture = close_up(clean, clean)
    assert picture.zoom == 1
    np.testing.assert_array_equal(pixels(picture), clean)


def test_an_empty_image_is_shown_whole() -> None:
    empty = np.full((32, 32), 255, dtype=np.uint8)
    assert ink_box(empty) is None
    assert close_up(empty, empty).zoom == 1


def test_a_sample_with_a_patch_is_shown_whole(small_demo: Demo) -> None:
    scene = small_demo.scene
    covered = [row for row, level in enumerate(scene.part.probes.level) if "occlusion" in str(level)]
    assert {probe_card(scene, row).picture.zoom for row in covered[:40]} == {1}
    others = [row for row in range(len(scene.answers)) if row not in covered]
    assert {probe_card(scene, row).picture.zoom for row in others[:300]} == {1, 2}
