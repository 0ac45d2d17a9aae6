"""Every screen in a real browser, against a running service."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from holue.service.service import Service
from holue.service.settings import ReviewSettings

OF_DEMO = ("identify", "review", "subjects", "subjects/3", "enrol", "audit", "calibration", "log")
SCREENS = ("try", *(f"galleries/demo/{screen}" for screen in OF_DEMO), "keys")


def bars(page: Any) -> dict[str, float]:
    """What the bars of "Try it" show."""
    rows = page.locator("#bars li")
    return {
        rows.nth(i).locator(".label").inner_text(): float(rows.nth(i).locator(".value").inner_text())
        for i in range(rows.count())
    }


def test_signing_in_and_out(page: Any, site: Any) -> None:
    page.goto(site.address)
    assert "/sign-in" in page.url
    page.get_by_label("Key").fill("hk_0123456789ab_" + "0" * 64)
    page.get_by_role("button", name="Sign in").click()
    assert "not valid" in page.get_by_role("alert").inner_text()
    site.sign_in(page)
    assert page.url.endswith("/try")
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{site.address}/galleries/demo/subjects")
    assert "/sign-in" in page.url


@pytest.mark.parametrize("width", [2000, 1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_screen_breaks_a_rule_of_accessibility(page: Any, site: Any, width: int, scheme: Any) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    site.sign_in(page)
    site.service.galleries.get("demo").run_audit()
    for screen in SCREENS:
        page.goto(f"{site.address}/{screen}")
        page.wait_for_load_state("networkidle")
        found = Axe().run(page).response["violations"]
        assert not found, (screen, [(each["id"], each["nodes"][0]["html"]) for each in found])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{screen} is wider than the window"
    assert page.said == []


def test_the_answer_follows_the_sliders(page: Any, site: Any) -> None:
    site.sign_in(page)
    page.get_by_role("button", name="A clear picture").click()
    page.wait_for_function("() => document.querySelector('#verdict').textContent.startsWith('✓')")
    clear = bars(page)
    page.locator("#size").fill("26")
    page.wait_for_function("() => !document.querySelector('#verdict').textContent.startsWith('✓')")
    assert max(bars(page).values()) <= 1
    assert bars(page) != clear
    page.get_by_role("button", name="A stranger").click()
    page.wait_for_function("() => document.querySelector('#verdict').textContent.startsWith('∅')")
    assert bars(page)["nobody"] > 0.5
    assert page.said == []


def test_a_drawing_is_answered_while_it_is_drawn(page: Any, site: Any) -> None:
    site.sign_in(page)
    page.get_by_role("tab", name="Draw").click()
    box = page.locator("#ink").bounding_box()
    page.wait_for_timeout(200)
    before = page.locator("#reason").inner_text()
    page.mouse.move(box["x"] + 100, box["y"] + 90)
    page.mouse.down()
    for step in range(10):
        page.mouse.move(box["x"] + 100 + 10 * step, box["y"] + 90 + 12 * step)
    page.wait_for_function("before => document.querySelector('#reason').textContent !== before", arg=before)
    page.mouse.up()
    assert page.said == []


def test_a_reviewer_decides_with_one_key(page: Any, site: Any) -> None:
    reviews = site.service.galleries.get("demo").ledger.reviews
    waiting = reviews.counts()["open"]
    assert waiting > 3
    site.sign_in(page, "reviewer")
    page.goto(f"{site.address}/galleries/demo/review")
    offered = page.locator(".candidates li").all_inner_texts()
    assert offered[-1].startswith("∅")
    said = [float(found) for text in offered for found in re.findall(r"probability ([0-9.]+)", text)]
    assert len(said) == len(offered)  # nobody's probability is there too, so that the list accounts for all of it
    assert sum(said) <= 1.01
    page.keyboard.press("a")
    page.wait_for_url("**/review?undo=*")
    assert reviews.counts()["decided"] == 1
    page.keyboard.press("x")
    page.wait_for_function("() => document.body?.textContent.includes('2 decided')")
    page.keyboard.press("Backspace")
    page.wait_for_function("() => document.body?.textContent.includes('undone')")
    assert reviews.counts()["decided"] == 1
    page.keyboard.press("Space")
    page.wait_for_load_state("networkidle")
    assert reviews.counts()["open"] == waiting - 1


def test_two_reviewers_get_different_items_and_a_double_click_decides_once(chromium: Any, page: Any, site: Any) -> None:
    site.sign_in(page, "reviewer")
    page.goto(f"{site.address}/galleries/demo/review")
    other = chromium.new_context().new_page()
    site.sign_in(other, "reviewer")
    other.goto(f"{site.address}/galleries/demo/review")
    first, second = (tab.locator(".decide form").first.get_attribute("action") for tab in (page, other))
    assert first != second
    page.locator("[data-key='x']").dblclick()
    page.wait_for_url("**/review?undo=*")
    assert site.service.galleries.get("demo").ledger.reviews.counts()["decided"] == 1
    other.context.close()


def test_the_last_decision_can_be_undone_after_the_page_was_opened_anew(page: Any, site: Any) -> None:
    reviews = site.service.galleries.get("demo").ledger.reviews
    site.sign_in(page, "reviewer")
    page.goto(f"{site.address}/galleries/demo/review")
    assert page.locator("[data-key='Backspace']").count() == 0
    page.keyboard.press("x")
    page.wait_for_url("**/review?undo=*")
    page.goto(f"{site.address}/galleries/demo")
    page.goto(f"{site.address}/galleries/demo/review")
    page.keyboard.press("Backspace")
    page.wait_for_function("() => document.body?.textContent.includes('undone')")
    assert reviews.counts()["decided"] == 0
    assert page.locator("[data-key='Backspace']").count() == 0


def test_two_people_decide_the_same_review_on_phones_with_a_thumb(chromium: Any, service: Any, serve: Any) -> None:
    settings = service.settings.model_copy(update={"reviews": ReviewSettings(people=2)})
    service.close()
    both = Service(settings).open()
    phone = {"viewport": {"width": 400, "height": 800}, "has_touch": True, "is_mobile": True}
    with serve(both) as site:
        reviews = both.galleries.get("demo").ledger.reviews
        tabs = [chromium.new_context(**phone).new_page() for _ in range(2)]
        asked = []
        for decided, tab in enumerate(tabs):
            site.sign_in(tab, "reviewer")
            tab.goto(f"{site.address}/galleries/demo/review")
            asked.append(tab.locator(".decide form").first.get_attribute("action"))
            for button in tab.locator(".decide button").all():
                place = button.bounding_box()
                assert place["height"] >= 44
                assert 400 <= place["y"] <= 800 - place["height"], "it is in reach of a thumb, without scrolling"
                assert place["x"] + place["width"] <= 400
            assert tab.evaluate("() => document.documentElement.scrollWidth") == 400
            assert reviews.counts()["decided"] == 0
            tab.locator("[data-key='a']").tap()
            tab.wait_for_url("**/review?undo=*")
            assert reviews.counts()["decided"] == decided, "one person alone decides nothing"
        assert asked[0] == asked[1]
        tabs[1].locator("[data-key='Backspace']").tap()
        tabs[1].wait_for_function("() => document.body?.textContent.includes('undone')")
        assert reviews.counts()["decided"] == 0
        for tab in tabs:
            tab.context.close()
    both.close()


def test_the_back_button_shows_a_decision_that_cannot_be_made_twice(page: Any, site: Any) -> None:
    site.sign_in(page, "reviewer")
    page.goto(f"{site.address}/galleries/demo/review")
    page.keyboard.press("x")
    page.wait_for_url("**/review?undo=*")
    page.go_back()
    page.wait_for_load_state("networkidle")
    page.keyboard.press("x")
    page.wait_for_load_state("networkidle")
    counts = site.service.galleries.get("demo").ledger.reviews.counts()
    assert counts["decided"] in (1, 2)  # a fresh item, or a refusal: never the same item twice
    decided = site.service.galleries.get("demo").ledger.reviews.items()
    assert all(len([one for one in item.decisions if one.undone is None]) <= 1 for item in decided)


def test_images_are_identified_and_a_wrong_file_is_explained(page: Any, site: Any, tmp_path: Any) -> None:
    from PIL import Image

    assert site.service.try_it is not None
    playground = site.service.try_it.playground
    site.sign_in(page, "operator")
    page.goto(f"{site.address}/galleries/demo/identify")
    picture = tmp_path / "picture.png"
    Image.fromarray(playground.chosen(playground.enrolled[5].label)).save(picture)
    page.locator("#files").set_input_files([picture])
    page.get_by_role("button", name="Identify", exact=True).click()
    page.wait_for_function("() => document.body?.textContent.includes('1 answer')")
    assert page.locator("tbody tr").count() == 1
    wrong = tmp_path / "wrong.png"
    wrong.write_bytes(b"not an image")
    page.locator("#files").set_input_files([wrong])
    page.get_by_role("button", name="Identify", exact=True).click()
    assert "not a readable image" in page.get_by_role("alert").inner_text()


def test_script_in_a_name_is_text(page: Any, site: Any) -> None:
    live = site.service.galleries.get("demo").live
    name = "<script>document.title='taken'</script><img src=x onerror=alert(1)>"
    live.enroll(np.eye(1, live.dim), [name], concentration=[300.0])
    number = live.subject(name).number  # type: ignore[union-attr]
    site.sign_in(page)
    for screen in ("subjects?search=%3Cscript", f"subjects/{number}"):
        page.goto(f"{site.address}/galleries/demo/{screen}")
        assert name in page.locator("main").inner_text()
        assert "taken" not in page.title() or screen.startswith("subjects/")
        assert page.evaluate("document.querySelector('main script, main img[src=x]')") is None
    assert page.said == []


def test_a_subject_is_renamed_removed_and_brought_back(page: Any, site: Any) -> None:
    live = site.service.galleries.get("demo").live
    subject = live.subjects(limit=1)[0]
    site.sign_in(page, "enroller")
    page.goto(f"{site.address}/galleries/demo/subjects/{subject.number}")
    page.get_by_label("New name").fill("first one")
    page.get_by_role("button", name="Rename").click()
    assert live.subjects(limit=1)[0].id == "first one"
    page.get_by_role("button", name="Remove first one").click()
    assert live.subject("first one") is None
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => document.body?.textContent.includes('undone')")
    assert live.subject("first one") is not None
    page.goto(f"{site.address}/galleries/demo/subjects/{subject.number}")
    page.get_by_role("checkbox", name="I know").check()
    page.get_by_role("button", name="Erase first one").click()
    page.wait_for_function("() => document.body?.textContent.includes('was erased')")
    assert live.subject("first one") is None
    assert live.store.receipts()[-1].clean


def test_a_sample_links_to_its_original_by_the_operators_template(page: Any, service: Any, serve: Any) -> None:
    settings = service.settings.model_copy(update={"origin_link": "https://archive.example/photos/{origin}"})
    live = service.galleries.get("demo").live
    subject = live.subjects(2, 1)[0]
    live.add_samples(live.samples(subject.id)[0].embedding[None], [subject.id], origin='2026/no 7.jpg?x"><script>')
    service.close()
    linked = Service(settings).open()
    with serve(linked) as site:
        site.sign_in(page, "enroller")
        page.goto(f"{site.address}/galleries/demo/subjects/{subject.number}")
        link = page.get_by_role("link", name="2026/no 7.jpg")
        assert link.get_attribute("href") == ("https://archive.example/photos/2026/no%207.jpg%3Fx%22%3E%3Cscript%3E")
        assert link.get_attribute("rel") == "noreferrer"
        assert page.said == []
    linked.close()


def test_a_lost_connection_is_said(page: Any, site: Any) -> None:
    site.sign_in(page)
    page.wait_for_function("() => document.querySelector('#verdict').textContent !== ''")
    page.context.set_offline(True)
    page.get_by_role("button", name="A stranger").click()
    page.wait_for_function("() => document.querySelector('#connection').textContent.includes('No answer')")
    page.context.set_offline(False)
    page.get_by_role("button", name="A clear picture").click()
    page.wait_for_function("() => document.querySelector('#connection').textContent === ''")


def test_a_revoked_key_ends_the_session(page: Any, site: Any) -> None:
    site.sign_in(page)
    keys = site.service.access.keys
    assert keys is not None
    newest = keys.all()[-1]
    keys.create(newest.role)  # else the last admin's key could not be revoked
    keys.revoke(newest.prefix)
    page.goto(f"{site.address}/galleries/demo/subjects")
    assert "/sign-in" in page.url


def test_an_expired_session_leads_to_signing_in_and_back(page: Any, site: Any) -> None:
    """A screen, a form and a script's question, each after the session has ended."""
    from holue.service.ledger.tables import SESSIONS

    def expire() -> None:
        site.service.ledger.database.writing(
            lambda connection: connection.execute(SESSIONS.update().values(expires=1.0))
        )

    site.sign_in(page)
    page.goto(f"{site.address}/galleries/demo/subjects/3")
    expire()
    page.get_by_label("New name").fill("changed")
    page.get_by_role("button", name="Rename").click()
    page.wait_for_url(lambda url: "/sign-in" in url)
    assert site.service.galleries.get("demo").live.subject("changed") is None
    page.goto(f"{site.address}/galleries/demo/calibration")
    page.get_by_label("Key").fill(site.key("admin"))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/galleries/demo/calibration")
    page.goto(f"{site.address}/try")
    page.wait_for_function("() => document.querySelector('#verdict').textContent !== ''")
    expire()
    page.get_by_role("button", name="A stranger").click()
    page.wait_for_url(lambda url: "/sign-in" in url)


def test_ten_thousand_subjects_are_paged_and_searched(page: Any, site: Any) -> None:
    live = site.service.galleries.get("demo").live
    rows = np.random.default_rng(0).standard_normal((10_000, live.dim)).astype(np.float32)
    live.enroll(rows, [f"person {number:05}" for number in range(10_000)], concentration=[300.0] * 10_000)
    site.sign_in(page)
    page.goto(f"{site.address}/galleries/demo/subjects")
    assert "10100 subjects" in page.locator("caption").inner_text()
    assert page.locator("tbody tr").count() == 50
    page.get_by_role("link", name="Next page").click()
    assert page.locator("tbody tr").count() == 50
    page.get_by_role("searchbox").fill("PERSON 09998")
    page.get_by_role("button", name="Find").click()
    assert page.locator("tbody tr").count() == 1
    page.get_by_role("link", name="person 09998").click()
    page.wait_for_selector(".samples li")
    assert page.locator("h1").inner_text() == "person 09998"
    painted, size, _ = measured(page, f"{site.address}/galleries/demo/subjects")
    assert painted < 1000
    assert size < 300_000


def test_samples_are_moved_to_a_new_and_to_an_enrolled_subject_and_back(page: Any, site: Any) -> None:
    live = site.service.galleries.get("demo").live
    first, second = live.subjects(limit=2)
    before = {each.id: [sample.number for sample in live.samples(each.id)] for each in (first, second)}
    own = before[first.id]
    assert len(own) == 3
    site.sign_in(page, "enroller")

    def move(number: int, to: str) -> None:
        page.goto(f"{site.address}/galleries/demo/subjects/{first.number}")
        page.get_by_role("checkbox", name=f"Sample {number}", exact=True).check()
        page.get_by_label("or move them to").fill(to)
        page.get_by_role("button", name="Move", exact=True).click()
        page.wait_for_function("() => document.body?.textContent.includes('Moved to')")

    move(own[0], str(second.id))
    assert {sample.number for sample in live.samples(second.id)} == {*before[second.id], own[0]}
    move(own[1], "somebody new")
    assert [sample.number for sample in live.samples("somebody new")] == [own[1]]
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => document.body?.textContent.includes('undone')")
    assert live.subject("somebody new") is None
    move(own[1], str(second.id))
    page.get_by_role("button", name="Undo").click()  # a split and a merge
    page.wait_for_function("() => document.body?.textContent.includes('undone')")
    assert [sample.number for sample in live.samples(first.id)] == own[1:]
    page.goto(f"{site.address}/galleries/demo/subjects/{first.number}")
    page.get_by_label("The same as").fill(str(second.id))
    page.get_by_role("button", name="Merge").click()
    page.wait_for_function("() => document.body?.textContent.includes('is now part of')")
    assert live.subject(first.id) is None
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => document.body?.textContent.includes('undone')")
    assert live.subject(first.id) is not None


def test_findings_of_the_audit_are_answered_with_one_key_and_undone(page: Any, site: Any) -> None:
    opened = site.service.galleries.get("demo")
    live = opened.live
    rows = [sample.embedding for sample in live.samples(live.subjects(limit=1)[0].id)]
    live.enroll(np.array(rows), ["a copy"] * len(rows), concentration=[400.0] * len(rows))
    site.sign_in(page)
    page.goto(f"{site.address}/galleries/demo/audit")
    page.get_by_role("button", name="Audit the gallery").click()
    page.wait_for_selector(".pairs .first")
    card = page.locator(".pairs .first")
    assert "may be one" in card.inner_text()
    assert card.locator("figure").count() == 2
    page.keyboard.press("x")
    page.wait_for_function("() => document.body?.textContent.includes('will not be asked again')")
    assert len(opened.ledger.dismissals.all()) == 1
    assert "a copy" not in page.locator(".pairs .first").inner_text()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => document.body?.textContent.includes('is back')")
    assert opened.ledger.dismissals.all() == set()
    page.keyboard.press("a")
    page.wait_for_function("() => document.body?.textContent.includes('is now part of')")
    assert live.subject("a copy") is None or live.subjects(limit=1)[0].id == "a copy"
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/audit")
    assert live.subject("a copy") is not None


def test_the_handle_sets_the_filter_for_those_who_may_and_is_undone(page: Any, site: Any) -> None:
    live = site.service.galleries.get("demo").live
    before = live.settings.filter_below
    site.sign_in(page, "viewer")
    page.goto(f"{site.address}/galleries/demo/calibration")
    page.get_by_role("button", name="Measure").click()
    page.wait_for_selector("#kept")
    assert page.get_by_role("button", name="Filter so").count() == 0
    site.sign_in(page)
    page.goto(f"{site.address}/galleries/demo/calibration")
    start = int(page.locator("#kept").input_value())
    box = page.locator("#handle").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 150, box["y"])
    page.mouse.up()
    assert int(page.locator("#kept").input_value()) < start
    told = page.locator("#told").inner_text()
    page.get_by_role("button", name="Filter so").click()
    page.wait_for_function("() => document.body?.textContent.includes('Before:')")
    assert live.settings.filter_below != before
    share = told.split("%")[0].removeprefix("Filter ")
    assert f"{share}% of them" in page.locator(".notice.row").inner_text()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => document.body?.textContent.includes('Before:')")
    assert live.settings.filter_below == before


def test_watching_shows_the_four_examples_and_ends_at_a_touch(page: Any, site: Any) -> None:
    page.emulate_media(reduced_motion="reduce")
    site.sign_in(page)
    page.get_by_role("button", name="Watch").click()
    page.wait_for_function("() => document.querySelector('#caption').textContent.includes('few pixels')")
    assert page.locator("#watch").get_attribute("aria-pressed") == "true"
    page.wait_for_function("() => document.querySelector('#verdict').textContent.startsWith('?')")
    page.locator("#blur").fill("1")
    page.locator("h1").click()
    page.wait_for_function("() => document.querySelector('#watch').getAttribute('aria-pressed') === 'false'")
    assert page.said == []


def measured(page: Any, address: str) -> tuple[float, int, float]:
    """Milliseconds to the first paint, bytes without images, and the sum of layout shifts."""
    sizes: list[int] = []

    def count(response: Any) -> None:
        if response.request.resource_type != "image":
            sizes.append(len(response.body()))

    page.on("response", count)
    page.goto(address)
    page.wait_for_load_state("networkidle")
    painted, shift = page.evaluate("""() => new Promise(done => {
        let sum = 0;
        new PerformanceObserver(list => { for (const entry of list.getEntries()) sum += entry.value; })
            .observe({type: 'layout-shift', buffered: true});
        setTimeout(() => done([performance.getEntriesByName('first-contentful-paint')[0].startTime, sum]), 200);
    })""")
    page.remove_listener("response", count)
    return painted, sum(sizes), shift


def test_every_screen_is_painted_within_a_second_is_small_and_does_not_shift(page: Any, site: Any) -> None:
    site.sign_in(page)
    site.service.galleries.get("demo").run_audit()
    wrong = {}
    for screen in SCREENS:
        painted, size, shift = measured(page, f"{site.address}/{screen}")
        if painted >= 1000 or size >= 300_000 or shift >= 0.01:
            wrong[screen] = (painted, size, shift)
    assert not wrong
