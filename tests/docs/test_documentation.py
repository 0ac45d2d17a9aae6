"""The documentation is true: its code runs, prints what the page shows, and leaves no public name out.

A ``text`` block that follows a ``python`` block is what that block prints. To write the printed text into the pages anew,
run with HOLUE_UPDATE_DOCS=1 and read the difference.
"""

import contextlib
import io
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import holue
import holue.errors
import holue.functional
from holue.recognition.quality import SCORES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]

FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)")


@dataclass
class Block:
    kind: str
    body: str
    start: int  # where the body begins in the page
    line: int
    follows_code: bool  # nothing but blank lines since the code block before


def blocks(page: str) -> list[Block]:
    found: list[Block] = []
    end_of_code = None
    for match in FENCE.finditer(page):
        adjacent = end_of_code is not None and not page[end_of_code : match.start()].strip()
        line = page.count("\n", 0, match.start()) + 1
        found.append(Block(match["kind"].strip(), match["body"], match.start("body"), line, adjacent))
        end_of_code = match.end() if match["kind"].strip() == "python" else None
    return found


def printed_by_page(path: Path, page: str) -> Iterator[tuple[Block, Block | None, str]]:
    """Run the code of a page from top to bottom: each block, the output block after it, and what was printed."""
    namespace: dict[str, object] = {"__name__": "documentation"}
    listed = blocks(page)
    for block, after in zip(listed, [*listed[1:], None]):
        if block.kind != "python":
            continue
        shown = after if after is not None and after.kind == "text" and after.follows_code else None
        source = "\n" * block.line + block.body  # so that a traceback names the line of the page
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(source, str(path), "exec"), namespace)
        yield block, shown, output.getvalue()


def same_text(shown: str, printed: str) -> bool:
    """Equal words; numbers may differ by one in their last shown digit, which another BLAS may round the other way."""
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    return all(
        abs(float(ours) - float(theirs)) <= 1.001 * last_digit(ours)
        for ours, theirs in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    )


def last_digit(number: str) -> float:
    digits, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_code_block_runs_and_prints_what_the_page_shows(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # a page may install a package of its own
    page = path.read_text("utf-8")
    updated, offset = page, 0
    with mock.patch.dict(SCORES):  # a page may register scores of its own
        for block, shown, printed in printed_by_page(path, page):
            if shown is None:
                assert not printed, f"{path.name}:{block.line} prints, and no text block shows what:\n{printed}"
            elif os.environ.get("HOLUE_UPDATE_DOCS"):
                start = shown.start + offset
                updated = updated[:start] + printed + updated[start + len(shown.body) :]
                offset += len(printed) - len(shown.body)
            else:
                assert same_text(shown.body, printed), f"{path.name}:{block.line} prints\n{printed}not\n{shown.body}"
    if updated != page:
        path.write_text(updated, "utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_python_block_is_one_that_runs(path: Path) -> None:
    kinds = {block.kind for block in blocks(path.read_text("utf-8"))}
    assert kinds <= {"python", "text", "bash", "console", "toml"}, (
        "name a block python, and it runs; there are no exceptions"
    )


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("quickstart*.py")), ids=lambda path: path.stem)
def test_the_quickstart_example_runs(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(script), run_name="__main__")
    assert "operating point" in capsys.readouterr().out


def test_the_api_page_names_every_public_name() -> None:
    page = (DOCS / "api.md").read_text("utf-8")
    public = [*holue.__all__, *holue.functional.__all__]
    missing = [name for name in public if not re.search(rf"\b{name}\b", page)]
    assert not missing, f"docs/api.md does not mention {', '.join(missing)}"


def test_the_first_page_leads_to_every_other() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)", (DOCS / "index.md").read_text("utf-8")))
    assert {path.name for path in DOCS.glob("*.md")} - {"index.md"} <= linked


def test_the_methods_page_describes_every_score() -> None:
    page = (DOCS / "methods.md").read_text("utf-8")
    missing = [name for name in SCORES if f"`{name}`" not in page]
    assert not missing, f"docs/methods.md does not describe {', '.join(missing)}"


def test_the_quickstart_explains_every_error() -> None:
    page = (DOCS / "quickstart.md").read_text("utf-8")
    errors = {name for name, value in vars(holue.errors).items() if isinstance(value, type) and name.endswith("Error")}
    missing = sorted(name for name in errors - {"NotFittedError"} if f"`{name}`" not in page)
    assert not missing, f"docs/quickstart.md does not explain {', '.join(missing)}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (extra: docs)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_site_asks_nothing_of_the_network_and_knows_every_formula(site: Path) -> None:
    for page in site.glob("*.html"):
        outside = re.findall(r"<(?:script|link)[^>]+(?:src|href)=[\"']?https?://[^\"'> ]+", page.read_text("utf-8"))
        assert not outside, f"the site must open offline, but {page.name} loads {outside}"
    theory = (site / "theory.html").read_text("utf-8")
    assert theory.count('<div class="formula">') == (DOCS / "theory.md").read_text("utf-8").count("\n$$\n") // 2 > 10
    typeset = re.findall(r"<math .*?</math>", theory, re.DOTALL)
    left_over = [formula for formula in typeset if "\\" in formula or "&amp;" in formula]
    assert not left_over, "the site does not know a command of LaTeX; write the formula in another way"


def test_every_formula_fits_a_telephone(chromium: Any, site: Path) -> None:
    page = chromium.new_page(viewport={"width": 400, "height": 900})
    page.goto((site / "theory.html").as_uri())
    cut = "() => [...document.querySelectorAll('.formula')].map(one => one.scrollWidth - one.clientWidth)"
    assert set(page.evaluate(cut)) == {0}, (
        "a part of a formula after \\qquad stands below the other; use it in long ones"
    )
    page.close()


def test_numbers_in_the_last_place_may_differ_and_words_may_not() -> None:
    assert same_text("FPIR 0.05, 12 probes", "FPIR 0.06,  12 probes\n")
    assert not same_text("FPIR 0.05", "FPIR 0.07")
    assert not same_text("FPIR 0.05", "FNIR 0.05")
