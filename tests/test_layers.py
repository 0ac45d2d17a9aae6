"""The house has floors: imports point down only."""

import ast
from pathlib import Path

import holue

ROOT = Path(holue.__file__).parent
# Top to bottom; packages on one floor do not import each other.
FLOORS = [
    {"__main__"},
    {"cli"},
    {"experiments", "bench", "demo"},
    {"functional", "__init__", "service", "client"},
    {"datasets"},
    {"embedding"},
    {"evaluation"},
    {"live"},
    {"store", "cluster"},
    {"recognition"},
    {"evidence"},
    {"gallery"},
    {"sphere"},
    {"artifact", "progress"},
    {"errors"},
]
FLOOR_OF = {name: height for height, floor in enumerate(reversed(FLOORS)) for name in floor}


def imports_of(path: Path) -> list[tuple[str, int]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import; name the module in full"
            names = [node.module or ""]
            if node.module == "holue":
                names = [f"holue.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found += [(name, node.lineno) for name in names if name.split(".")[0] == "holue"]
    return found


def test_imports_point_down_only() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        here = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for name, line in imports_of(path):
            there = name.split(".")[1] if "." in name else "__init__"
            if there == here or here == "__init__":
                continue
            if FLOOR_OF.get(there, -1) >= FLOOR_OF[here]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name} from above or beside")
    assert not wrong, "\n".join(wrong)


def test_private_names_stay_in_their_module() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "holue":
                private = [alias.name for alias in node.names if alias.name.startswith("_") and alias.name[:2] != "__"]
                wrong += [f"{path.relative_to(ROOT)}:{node.lineno} imports {name} of {node.module}" for name in private]
    assert not wrong, "\n".join(wrong)


def test_every_package_has_a_floor() -> None:
    names = {p.name for p in ROOT.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    assert names <= set(FLOOR_OF), f"give {names - set(FLOOR_OF)} a floor"


def test_no_file_outgrows_one_noun() -> None:
    long = {p.name: n for p in ROOT.rglob("*.py") if (n := len(p.read_text("utf-8").splitlines())) > 420}
    assert not long, f"split these files: {long}"
