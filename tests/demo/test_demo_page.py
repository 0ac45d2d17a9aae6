"""The demo is written whole, needs nothing beside itself, and is the same for the same seed."""

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from holue.cli.app import app
from holue.demo.demo import FORMAT, Demo, check_demo_folder
from holue.demo.summary import summary
from holue.errors import InvalidFileError


@pytest.fixture(scope="session")
def page(small_demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_demo.write(tmp_path_factory.mktemp("demo") / "out")


def test_the_page_asks_nothing_of_the_network(page: Path) -> None:
    text = page.read_text("utf-8")
    addresses = re.findall(r'(?:src|href)\s*=\s*"([^"]*)"', text)
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in addresses)
    assert "<script" not in text
    assert "@import" not in text
    assert "nan" not in re.findall(r"\bnan\b", text)


def test_every_shown_probe_has_its_picture_and_its_verdict(page: Path, small_demo: Demo) -> None:
    text = page.read_text("utf-8")
    cards = sum(len(group.shown) for group in small_demo.groups)
    assert text.count('<article class="card') == text.count('class="picture sample"') == cards
    assert text.count("✗</span> wrong") == text.count('<article class="card wrong"') > 0
    assert text.count("✓</span> right") == text.count('<article class="card right"') > 0


def test_links_on_the_page_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    assert set(re.findall(r'<a href="#([^"]+)"', text)) <= ids


def test_tags_are_closed(page: Path) -> None:
    open_tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in {"meta", "img", "br", "path", "use", "rect"}:
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag in open_tags:
                assert open_tags.pop() == tag

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

    Reader().feed(page.read_text("utf-8"))
    assert not open_tags


def test_numbers_and_figures_lie_beside_the_page(page: Path, small_demo: Demo) -> None:
    document = json.loads((page.parent / "results.json").read_text("utf-8"))
    assert document["format"] == FORMAT
    assert len(document["answers"]["subject"]) == sum(document["probes"].values()) == len(small_demo.scene.answers)
    figures = {path.name for path in (page.parent / "figures").iterdir()}
    assert {"rejection_curves.png", "figure1_toy_world.png"} <= figures
    assert {path.name for path in page.parent.iterdir()} == {"report.html", "results.json", "figures"}


def test_the_command_with_the_same_seed_writes_the_same_bytes(small_demo: Demo, page: Path, tmp_path: Path) -> None:
    scene, out = small_demo.scene, tmp_path / "demo"
    words = ["demo", "--out", str(out), "--seed", str(scene.seed), "--subjects", str(len(scene.part.known)), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for name in ("report.html", "results.json"):
        assert (out / name).read_bytes() == (page.parent / name).read_bytes()
    assert json.loads(result.stdout) == json.loads((out / "results.json").read_text("utf-8"))


def test_a_folder_that_is_no_demo_is_refused_and_untouched(small_demo: Demo, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"format": "something else"}')
    with pytest.raises(InvalidFileError, match="is no demo of holue"):
        small_demo.write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def test_an_earlier_demo_may_be_replaced(page: Path) -> None:
    check_demo_folder(page.parent)


def test_certain_answers_are_right_more_often(small_demo: Demo) -> None:
    rates = small_demo.scene.error_rates
    assert rates["certain_half"] < rates["all"] < rates["uncertain_half"]


def test_the_summary_fits_eighty_columns(small_demo: Demo) -> None:
    console = Console(width=80, highlight=False, file=io.StringIO())
    for part in summary(small_demo, Path("demo/report.html")):
        console.print(part)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for expected in (
        "60 characters are enrolled",
        "Operating point",
        "certain half",
        "demo/report.html",
        "holue split",
    ):
        assert expected in text
