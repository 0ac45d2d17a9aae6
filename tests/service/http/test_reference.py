"""The pages about the service are true: the reference is what the description says, and the first steps work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holue.service.app import create_app
from holue.service.reference import api_reference
from holue.service.settings import ServiceSettings

from .process import ready, served

DOCS = Path(__file__).parents[3] / "docs"
ADDRESS = "http://127.0.0.1:8075"


def test_the_reference_page_is_what_the_description_says() -> None:
    made = api_reference(create_app(ServiceSettings(galleries="nowhere")).openapi())
    page = DOCS / "service-api.md"
    if os.environ.get("HOLUE_UPDATE_DOCS"):
        page.write_text(made, "utf-8")
    assert page.read_text("utf-8") == made, "run HOLUE_UPDATE_DOCS=1 pytest tests/service/http/test_reference.py"


def test_the_first_steps_of_the_page_work(tmp_path: Path) -> None:
    """Every ``bash`` block of the first two sections, in their order, against the demo."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    pytest.importorskip("onnxruntime")
    page = (DOCS / "service.md").read_text("utf-8")
    steps = page[: page.index("## Settings")]
    blocks = re.findall(r"^```bash\n(.*?)^```$", steps, re.MULTILINE | re.DOTALL)
    started, *rest = blocks
    assert "make serve" in started
    previous = Path.cwd()
    os.chdir(tmp_path)
    try:
        with served(None, "--demo") as running, running.client() as client:
            ready(client)
            script = "set -euo pipefail\n" + "\n".join(rest).replace(ADDRESS, running.address).replace(
                ".venv/bin/python", sys.executable
            )
            script = re.sub(r"^export KEY=.*$", f"export KEY={running.key}", script, flags=re.MULTILINE)
            done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    finally:
        os.chdir(previous)
    assert done.returncode == 0, done.stderr
    assert '"decision":"accepted"' in done.stdout
    assert '"operation":"demo.2"' in done.stdout
