"""Chromium for the tests of the page: found in the environment, on the PATH, or where Playwright keeps its own.

``python tests/service/page/chromium.py`` gets one where none is found: the system's packages where they may be installed, or
Playwright's download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

VARIABLE, NEEDED = "HOLUE_CHROMIUM", "HOLUE_NEED_CHROMIUM"
LONGEST = 600
"""Seconds for each attempt to get one."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NONE_FOUND = (
    f"NO CHROMIUM: the page is not tested. Name one with {VARIABLE}=PATH, put one on the PATH, or run: "
    "python tests/service/page/chromium.py"
)


def find_chromium() -> str | None:
    """The path of a Chromium, or None."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    return next((found for name in NAMES if (found := shutil.which(name))), None) or _playwrights_own()


def is_needed() -> bool:
    """Whether tests without a Chromium fail."""
    return bool(os.environ.get(NEEDED))


def _playwrights_own() -> str | None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _get() -> str | None:
    """The system's packages first where they may be installed: they come from a mirror that is set up; Playwright's host may not
    be reached, and then its download waits until it is given up."""
    attempts = []
    if os.geteuid() == 0 and shutil.which("apt-get"):
        attempts += [["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium"]]
    attempts.append([sys.executable, "-m", "playwright", "install", "chromium"])
    for command in attempts:
        print(" ".join(command), flush=True)
        try:
            done = subprocess.run(command, timeout=LONGEST, check=False, capture_output=True, text=True)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"  {type(error).__name__}: {error}", flush=True)
            continue
        if done.returncode:
            print(f"  failed: {' '.join((done.stderr or done.stdout).split())[-300:]}", flush=True)
        found = find_chromium()
        if found:
            return found
    return None


if __name__ == "__main__":
    path = find_chromium() or _get()
    print(path or NONE_FOUND)
    sys.exit(0 if path or not is_needed() else 1)
