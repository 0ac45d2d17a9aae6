"""Pages are filled in one place: escaped, whole, and with a clear word where jinja2 is missing."""

import sys
from pathlib import Path

import pytest

import holue
from holue.errors import MissingDependencyError
from holue.evaluation.report import page_template
from holue.evaluation.report.page_template import filled_page


def test_templates_are_set_up_in_one_file() -> None:
    root = Path(holue.__file__).parent
    users = [path.name for path in root.rglob("*.py") if "import Environment" in path.read_text("utf-8")]
    assert users == ["page_template.py"]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "letter.html.jinja").write_text("\n<p>{{ name }}</p>\n\n", "utf-8")
    monkeypatch.setattr(page_template, "files", lambda package: tmp_path)
    return "letters"


def test_what_a_user_wrote_is_text_and_never_markup(package: str) -> None:
    assert filled_page(package, "letter", name="<b>Ann & Bob</b>") == "<p>&lt;b&gt;Ann &amp; Bob&lt;/b&gt;</p>\n"


def test_a_value_that_is_missing_is_an_error_and_not_a_gap(package: str) -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError, match="name"):
        filled_page(package, "letter")


def test_without_jinja_the_extra_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'holue\[demo\]'"):
        filled_page(package, "letter", extra="demo", name="Ann")
