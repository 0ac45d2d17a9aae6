"""Inputs: what a command reads is never what it writes, and no result goes into the files of a gallery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from holue.errors import InvalidFileError

WRITTEN = ("out", "report", "html", "page", "chart", "export")
"""Parameters that name what a command writes."""
KEPT = ("cache", "checkpoints")
"""Parameters that name folders of a command's own, which it both reads and writes."""
REPLACED = ("report",)
"""Of those written, folders that are replaced with everything in them."""
DATABASE = "gallery.db"
"""The file by which the directory of a gallery is known."""


def check_inputs(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters of a command that would have it write over something it reads, under whatever name."""
    given = {name: list(_paths(value)) for name, value in parameters.items() if name not in KEPT}
    read = [path for name, paths in given.items() if name not in WRITTEN for path in paths]
    for name in WRITTEN:
        for path in given.get(name, ()):
            keep_inputs(path, read, is_replaced=name in REPLACED)
            keep_galleries(path)


def keep_galleries(written: Path) -> None:
    """Refuse ``written`` where it is the directory of a gallery, or in one: only the gallery's own commands change that."""
    place = written.resolve()
    for folder in (place, *place.parents):
        if (folder / DATABASE).is_file():
            raise InvalidFileError(f"{written}: is in the gallery {folder.name}; choose a place outside it to write to")


def keep_inputs(written: Path, read: Iterable[Path], *, is_replaced: bool = False) -> None:
    """Refuse ``written`` where it is one of the files and folders in ``read``, or a file in one of those folders.

    ``is_replaced`` says that ``written`` is a folder that goes with everything in it: then nothing in ``read`` may be in it.
    """
    place = written.resolve()
    for path in read:
        if _is_same(written, path):
            raise InvalidFileError(f"{written}: is the input {path} itself; choose another place to write to")
        if path.is_dir() and written.is_file() and place.is_relative_to(path.resolve()):
            raise InvalidFileError(f"{written}: is a file of the input {path}; choose another place to write to")
        if is_replaced and path.exists() and path.resolve().is_relative_to(place):
            raise InvalidFileError(f"{written}: holds the input {path}; choose another place to write to")


def _paths(value: Any) -> Iterable[Path]:
    # As words too: a model is named by a word or by a path, and paths are made of words only when the command starts.
    if isinstance(value, str | Path):
        yield Path(value)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _paths(each)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)  # through links, hard ones too
    except OSError:
        return False
