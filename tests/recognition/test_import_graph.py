"""The modules of recognition depend on each other in one direction, types included."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import holue.recognition

ROOT = Path(holue.recognition.__file__).parent
PACKAGE = "holue.recognition"


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([PACKAGE, *(part for part in parts if part != "__init__")])


MODULES = {module_of(path): path for path in ROOT.rglob("*.py")}


def imports_of(path: Path) -> Iterator[str]:
    """Every module of the package that a file imports, wherever in the file, also under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            below = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in below]
        yield from (name for name in names if name in MODULES)


def sorter(graph: dict[str, set[str]]) -> TopologicalSorter[str]:
    return TopologicalSorter(graph)


def test_a_cycle_would_be_found() -> None:
    with pytest.raises(CycleError):
        sorter({"a": {"b"}, "b": {"c"}, "c": {"a"}}).prepare()


def test_no_module_depends_on_itself_through_others() -> None:
    graph = {name: set(imports_of(path)) - {name} for name, path in MODULES.items()}
    assert graph[f"{PACKAGE}.recognizer"] >= {f"{PACKAGE}.state.state", f"{PACKAGE}.state.moment"}
    sorter(graph).prepare()


def test_nothing_below_knows_the_recogniser() -> None:
    above = {f"{PACKAGE}.recognizer", f"{PACKAGE}.warm_up"}
    knows = [
        name for name, path in MODULES.items() if name not in above and f"{PACKAGE}.recognizer" in imports_of(path)
    ]
    assert not knows


def of_itself(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def test_private_names_stay_in_their_module() -> None:
    """A function that needs another object's underscore belongs to that object."""
    wrong = []
    for name, path in MODULES.items():
        attributes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Attribute)]
        private = [node for node in attributes if node.attr.startswith("_") and not node.attr.startswith("__")]
        own = {node.attr for node in private if of_itself(node)}
        wrong += [f"{name}:{node.lineno} reads {ast.unparse(node)}" for node in private if node.attr not in own]
    assert not wrong, "\n".join(wrong)
