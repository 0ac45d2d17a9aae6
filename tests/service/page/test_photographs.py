"""A gallery of real photographs in a real browser: faces boxed and named, enrolment that asks which face, links to originals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LINK = "https://archive.example/{origin}"


@pytest.fixture(scope="module")
def gallery_folder(originals: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with people enrolled from their photographs; ``faces`` keeps pictures, ``plain`` keeps none."""
    from holue.service.galleries.enrolling import enrol_files
    from holue.service.galleries.sent_files import ReceivedFiles

    folder: Path = tmp_path_factory.mktemp("photographs") / "galleries"
    service = originals.service(folder)
    for name, keep in (("faces", True), ("plain", False)):
        opened = originals.gallery(service, name, keep_images=keep)
        for person in originals.PEOPLE:
            names = tuple(f"{person}/{number}.jpg" for number in (1, 2))
            contents = tuple(originals.of(person, number) for number in (1, 2))
            sent = ReceivedFiles(names, contents, ("central",)).embedded(service.embedder, every_face=False)
            enrol_files(opened, person, sent, origins=names, by="test")
    service.close()
    return folder


@pytest.fixture
def faces(gallery_folder: Path, originals: Any, serve: Any) -> Iterator[Any]:
    service = originals.service(gallery_folder, origin_link=LINK)
    with serve(service) as site:
        yield site
    service.close()


def test_faces_are_boxed_with_name_certainty_and_reason(page: Any, faces: Any, originals: Any, tmp_path: Path) -> None:
    known, several = tmp_path / "known.jpg", tmp_path / "several.jpg"
    known.write_bytes(originals.of("Alvaro_Uribe", 4))
    several.write_bytes(originals.read(originals.SEVERAL))
    faces.sign_in(page, "operator")
    page.goto(f"{faces.address}/galleries/faces/identify")
    page.locator("#files").set_input_files([known, several])
    page.get_by_role("button", name="Identify", exact=True).click()
    page.wait_for_selector(".photograph")
    shown = page.locator(".photograph")
    assert shown.count() == 2
    assert "✓ Alvaro_Uribe" in shown.nth(0).inner_text()
    assert shown.nth(1).locator("svg .face").count() >= 3
    assert shown.nth(1).locator("li").count() == shown.nth(1).locator("svg .face").count()
    assert "pixels across" in shown.nth(1).inner_text()
    rows = page.locator("tbody tr").count()
    assert rows == page.locator("svg .face").count()
    box = page.evaluate("""() => {
        const outer = document.querySelector('.photograph svg').getBoundingClientRect();
        const inner = document.querySelector('.photograph rect').getBoundingClientRect();
        return inner.width > 20 && inner.left >= outer.left - 5 && inner.right <= outer.right + 5;
    }""")
    assert box
    assert page.evaluate("[...document.querySelectorAll('img')].every(image => image.naturalWidth > 0)")
    assert page.said == []
    page.locator("#files").set_input_files([several])
    with page.expect_download() as download:
        page.get_by_role("button", name="Identify and save as CSV").click()
    table = Path(download.value.path()).read_text("utf-8").splitlines()
    assert table[0].startswith("probe,decision,subject")
    assert "face_sharpness" in table[0]
    assert len(table) >= 4


def test_no_rule_of_accessibility_is_broken_where_faces_are_boxed(
    page: Any, faces: Any, originals: Any, tmp_path: Path
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    several = tmp_path / "several.jpg"
    several.write_bytes(originals.read(originals.SEVERAL))
    faces.sign_in(page)
    for width, scheme in ((1280, "light"), (400, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        for screen, button in (("identify", "Identify"), ("enrol", "Enrol")):
            page.goto(f"{faces.address}/galleries/faces/{screen}")
            if screen == "enrol":
                page.get_by_label("Name").fill("somebody")
            page.locator("#files").set_input_files([several])
            page.get_by_role("button", name=button, exact=True).click()
            page.wait_for_selector(".photograph")
            found = Axe().run(page).response["violations"]
            assert not found, (screen, [(each["id"], each["nodes"][0]["html"]) for each in found])
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_enrolment_asks_which_face_is_meant_and_can_be_undone(
    page: Any, faces: Any, originals: Any, tmp_path: Path
) -> None:
    several = tmp_path / "several.jpg"
    several.write_bytes(originals.read(originals.SEVERAL))
    live = faces.service.galleries.get("faces").live
    faces.sign_in(page, "enroller")
    page.goto(f"{faces.address}/galleries/faces/subjects")
    page.get_by_role("link", name="Enrol somebody").click()
    page.get_by_label("Name").fill("the second")
    page.locator("#files").set_input_files([several])
    page.get_by_role("button", name="Enrol", exact=True).click()
    assert "faces" in page.get_by_role("alert").inner_text()
    assert page.locator("svg .face").count() >= 3
    assert live.subject("the second") is None
    page.locator("#files").set_input_files([several])
    page.get_by_label("Which face").fill("2")
    page.get_by_role("button", name="Enrol", exact=True).click()
    page.wait_for_selector("img.sample")
    assert "pixels across" in page.locator(".samples").inner_text()
    assert live.subject("the second") is not None
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => document.body?.textContent.includes('undone')")
    assert live.subject("the second") is None


def test_without_kept_pictures_the_page_shows_quality_origin_and_a_link(page: Any, faces: Any) -> None:
    faces.sign_in(page, "enroller")
    number = faces.service.galleries.get("plain").live.subject("Al_Gore").number
    page.goto(f"{faces.address}/galleries/plain/subjects/{number}")
    assert page.locator("img.sample").count() == 0
    assert page.locator(".samples li").count() == 2
    assert "pixels across" in page.locator(".samples").inner_text()
    link = page.get_by_role("link", name="Al_Gore/1.jpg")
    assert link.get_attribute("href") == "https://archive.example/Al_Gore/1.jpg"
    assert "noreferrer" in link.get_attribute("rel")
