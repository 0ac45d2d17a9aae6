"""Result folder: results are written over nothing but earlier results of the same kind."""

from __future__ import annotations

import json
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


def _holds(folder: Path, format: str) -> bool:
    try:
        document: Any = json.loads((folder / RESULTS_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("format") == format
