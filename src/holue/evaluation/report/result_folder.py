"""Result folder: results written whole or not at all, and over nothing but earlier results of the same kind."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holue.errors import InvalidFileError

RESULTS_FILE = "results.json"
"""Its key ``format`` says what kind of results a folder holds."""


def check_result_folder(folder: Path, *, format: str, what: str) -> None:
    """Refuse any folder but a new one, an empty one or one of the same ``format``; cheap, so ask before the work.

    ``what`` names the results in the message, such as "report".
    """
    around = next(parent for parent in folder.resolve().parents if parent.exists())
    if not around.is_dir():
        raise InvalidFileError(f"{around}: is a file; choose another folder for the {what}")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InvalidFileError(f"{folder}: is a file; choose another folder for the {what}")
    if any(folder.iterdir()) and not _holds(folder, format):
        raise InvalidFileError(
            f"{folder}: exists and is no {what} of holue (it has no {RESULTS_FILE} of one); choose another folder"
        )


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder`` to fill, which takes its place at the end; after an error nothing has changed."""
    folder = folder.resolve()  # "." has no name to put another beside
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        yield partial
        _put_in_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put_in_place(partial: Path, folder: Path) -> None:
    if not folder.exists():
        os.rename(partial, folder)
        return
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    os.rename(folder, old)
    os.rename(partial, folder)
    shutil.rmtree(old)


def _holds(folder: Path, format: str) -> bool:
    try:
        document: Any = json.loads((folder / RESULTS_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("format") == format
