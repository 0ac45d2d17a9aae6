"""Pictures in the ledger: kept where that was chosen, and gone with their subject."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import holue
from holue.errors import InvalidParameterError
from holue.service.ledger.database import Database
from holue.service.ledger.images import LARGEST, Image, Images, Of
from holue.service.ledger.ledger import Ledger, erase_everywhere


def test_nothing_is_kept_unless_it_was_chosen(database: Database) -> None:
    images = Images(database)
    images.put(Of.SAMPLE, {1: Image("image/png", b"picture")})
    assert images.get(Of.SAMPLE, 1) is None
    images.start_keeping()
    images.put(Of.SAMPLE, {1: Image("image/png", b"picture"), 2: Image("image/jpeg", b"other")})
    assert images.get(Of.SAMPLE, 2) == Image("image/jpeg", b"other")
    assert images.present(Of.SAMPLE, [1, 2, 3]) == {1, 2}
    assert images.get(Of.REVIEW, 1) is None


def test_what_is_no_small_picture_is_refused(database: Database) -> None:
    images = Images(database)
    images.start_keeping()
    for image in (Image("text/html", b"<script>"), Image("image/png", bytes(LARGEST + 1))):
        with pytest.raises(InvalidParameterError):
            images.put(Of.SAMPLE, {1: image})
    assert images.get(Of.SAMPLE, 1) is None


def test_an_erased_subject_leaves_no_byte_of_its_pictures(tmp_path: Path) -> None:
    home = tmp_path / "home"
    rng = np.random.default_rng(0)
    with holue.open(home, create=True, dim=16, threshold=0.5, method="galue") as gallery, Ledger.open(home) as ledger:
        gallery.enroll(rng.standard_normal((4, 16)), ["ann", "ann", "bob", "cay"])
        ledger.images.start_keeping()
        pictures = {number: rng.bytes(3000) for number in range(1, 5)}
        ledger.images.put(Of.SAMPLE, {number: Image("image/png", content) for number, content in pictures.items()})
        receipt = erase_everywhere(gallery, ledger, ["ann"])
        assert receipt.clean
        assert ledger.images.present(Of.SAMPLE, [1, 2, 3, 4]) == {3, 4}
    files = [file.read_bytes() for file in home.rglob("*") if file.is_file()]
    for number in (1, 2):
        assert not any(pictures[number][start : start + 64] in file for file in files for start in range(0, 2900, 64))
    assert any(pictures[3][:64] in file for file in files)


def test_pictures_of_a_protected_gallery_are_covered_by_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLUE_TEMPLATE_KEY", "ab" * 32)
    home, content = tmp_path / "home", np.random.default_rng(0).bytes(3000)
    with holue.open(home, create=True, dim=16, threshold=0.5, method="galue", protect=True) as gallery:
        with Ledger.open(home, rotation=gallery.rotation) as ledger:
            ledger.images.start_keeping()
            ledger.images.put(Of.SAMPLE, {1: Image("image/png", content), 2: Image("image/png", content)})
            assert ledger.images.get(Of.SAMPLE, 1) == Image("image/png", content)
        with Ledger.open(home) as without_key:
            covered = [without_key.images.get(Of.SAMPLE, number) for number in (1, 2)]
        assert covered[0] != covered[1]
    files = [file.read_bytes() for file in home.rglob("*") if file.is_file()]
    assert not any(content[start : start + 64] in file for file in files for start in range(0, 2900, 64))
