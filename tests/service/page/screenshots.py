"""Screenshots of every screen, at 1 280 and 400 pixels, for the documentation: ``make screenshots``.

Starts the demo in a temporary directory, walks through its screens with a Chromium, and writes PNG files.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
TARGET = ROOT / "docs" / "images" / "page"
WIDTHS = (1280, 400)
LONGEST = 1400
"""Pixels of height that are kept: what is further down adds nothing to a picture."""
SCREENS = {
    "try": "try", "identify": "galleries/demo/identify", "review": "galleries/demo/review",
    "subjects": "galleries/demo/subjects", "subject": "galleries/demo/subjects/3", "audit": "galleries/demo/audit",
    "calibration": "galleries/demo/calibration", "log": "galleries/demo/log", "keys": "keys",
}  # fmt: skip


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        serving = subprocess.Popen(
            [sys.executable, "-m", "holue", "serve", "--demo", "--port", "0", "--json"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            assert serving.stdout is not None
            lines = []
            while not lines or lines[-1].rstrip() != "}":
                lines.append(serving.stdout.readline())
            told = json.loads("".join(lines))
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=_chromium(), args=["--no-sandbox"])
                _walk(browser.new_context(viewport={"width": WIDTHS[0], "height": 900}).new_page(), told, Path(folder))
                browser.close()
        finally:
            serving.send_signal(signal.SIGTERM)
            serving.wait()


def _walk(page: Any, told: dict[str, Any], folder: Path) -> None:
    address = told["address"]
    page.goto(address)
    _take(page, "sign-in")
    page.get_by_label("Key").fill(told["first_key"])
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/try")
    _prepare(page, address, folder)
    for name, path in SCREENS.items():
        page.goto(f"{address}/{path}")
        page.wait_for_load_state("networkidle")
        if name == "try":
            page.get_by_role("button", name="Between two", exact=True).click()
            page.wait_for_timeout(500)
        if name == "identify":
            page.locator("#files").set_input_files(sorted(folder.glob("*.png")))
            page.get_by_role("button", name="Identify", exact=True).click()
            page.wait_for_load_state("networkidle")
        if name == "calibration":
            page.locator("#kept").fill("75")
        _take(page, name)


def _prepare(page: Any, address: str, folder: Path) -> None:
    """Something to look at: pictures to identify, an audit, measured errors, a few decisions."""
    from PIL import Image

    from holue.datasets.glyphs.world import glyph_world

    for place, image in enumerate(glyph_world(0, subjects=300).evaluation.probes.images[:60:6]):
        Image.fromarray(image).save(folder / f"probe-{place}.png")
    page.goto(f"{address}/galleries/demo/audit")
    page.get_by_role("button", name="Audit the gallery").click()
    page.wait_for_load_state("networkidle")
    page.goto(f"{address}/galleries/demo/calibration")
    page.get_by_role("button", name="Measure").click()
    page.wait_for_load_state("networkidle")
    page.goto(f"{address}/galleries/demo/review")
    for key in "aaxa":
        with page.expect_navigation():
            page.keyboard.press(key)
        page.wait_for_load_state("networkidle")


def _take(page: Any, name: str) -> None:
    from PIL import Image

    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(150)
        tall = min(page.evaluate("document.documentElement.scrollHeight"), LONGEST)
        clip = {"x": 0, "y": 0, "width": width, "height": tall}
        taken = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip))).convert("RGB")
        few_colours = taken.quantize(96, dither=Image.Dither.NONE)  # a third of the bytes, and no difference to be seen
        few_colours.save(TARGET / f"{name}-{width}.png", optimize=True)
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})


def _chromium() -> str:
    specification = importlib.util.spec_from_file_location("chromium_finder", Path(__file__).parent / "chromium.py")
    assert specification is not None
    assert specification.loader is not None
    finder = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(finder)
    found = finder.find_chromium()
    if found is None:
        sys.exit(finder.NONE_FOUND)
    return str(found)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
