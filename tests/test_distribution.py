"""What is distributed: the wheel holds the package and its own files, and install lines name extras that exist."""

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "holue"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = set(PROJECT["optional-dependencies"])
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
INSTALL = re.compile(r"pip install\s+(?:--\S+\s+)*'?(?P<what>holue|\.)?\[(?P<extras>[a-z,]+)\]")


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("build", "hatchling"))), reason="build is not installed (extra: release)"
)
def test_the_wheel_holds_the_package_with_its_templates_and_models_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {PurePosixPath(name) for name in archive.namelist()}
    inside = {name for name in names if not name.parts[0].endswith(".dist-info")}
    sources = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert inside == {PurePosixPath(path.relative_to(PACKAGE.parent).as_posix()) for path in sources}
    assert {name.suffix for name in inside} == {
        ".py",
        ".jinja",
        ".css",
        ".js",
        ".svg",
        ".onnx",
        ".json",
        ".toml",
        ".typed",
    }, "no data"
    models = {name.parent for name in inside if name.suffix in {".onnx", ".json", ".toml"}}
    assert models == {PurePosixPath("holue/datasets/glyphs/model")}


def test_the_citation_and_the_changelog_name_the_version() -> None:
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    newest = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert PROJECT["version"] in newest[1]


def test_every_supported_python_is_tested() -> None:
    named = {line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)}
    for file in ("noxfile.py", ".github/workflows/tests.yml"):
        (listed,) = re.findall(r"\[((?:\"3\.\d+\"(?:, )?)+)\]", (ROOT / file).read_text("utf-8"))
        assert set(re.findall(r"3\.\d+", listed)) == named, file
    assert PROJECT["requires-python"] == f">={min(named, key=lambda version: int(version[2:]))}"


def test_every_extra_that_an_error_names_exists() -> None:
    named = {extra for path in PACKAGE.rglob("*.py") for extra in extras_named_in(path)}
    assert {"cli", "report", "embed", "demo", "train", "bench"} <= named <= EXTRAS


def extras_named_in(path: Path) -> Iterator[str]:
    """Second arguments of MissingDependencyError (constants of the module looked up), and extras in written install lines."""
    text = path.read_text("utf-8")
    for found in INSTALL.finditer(text):
        yield from found["extras"].split(",")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "MissingDependencyError":
            extra = node.args[1]
            if isinstance(extra, ast.Constant):
                yield str(extra.value)
            elif isinstance(extra, ast.Name) and extra.id.isupper():
                module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
                yield getattr(importlib.import_module(module), extra.id)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_install_lines_of_pages_read_like_those_of_errors(path: Path) -> None:
    for found in INSTALL.finditer(path.read_text("utf-8")):
        assert set(found["extras"].split(",")) <= EXTRAS, f"{path.name}: {found[0]}"
        assert found["what"] in ("holue", "."), f"{path.name}: {found[0]}"


def test_quickstart_names_every_extra_that_users_install() -> None:
    table = (ROOT / "docs" / "quickstart.md").read_text("utf-8").split("## Install")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == EXTRAS - {"dev", "docs", "release", "peers"}


def test_no_file_needs_a_package_to_be_imported_that_some_pythons_lack() -> None:
    requirements = [line for extra in PROJECT["optional-dependencies"].values() for line in extra]
    lacking = {re.split(r"[^\w.-]", line)[0] for line in requirements if "python_version" in line}
    assert lacking == {"pgserver"}
    for path in sorted({*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")}):  # doctests import every one
        for node in ast.parse(path.read_text("utf-8")).body:
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not lacking & set(imported), f"{path}: import it in the function that needs it"
