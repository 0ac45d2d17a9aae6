"""Layout: which files of a data set are needed, where they are looked for, and which are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holue.errors import InvalidFileError


@dataclass(frozen=True)
class Needed:
    """A file under one of several names, relative to the data folder, and what it is."""

    names: tuple[str, ...]
    what: str

    def find(self, data: Path) -> Path | None:
        """The first of its names that is there."""
        return next((data / name for name in self.names if (data / name).is_file()), None)


def check_layout(data: Path, needed: Sequence[Needed], title: str) -> None:
    """Refuse a folder that lacks files, with a list of all of them: nobody wants to learn of one at a time."""
    if not data.is_dir():
        raise InvalidFileError(f"{data}: no such folder; give the folder of {title} with --data")
    missing = [one for one in needed if one.find(data) is None]
    if missing:
        lines = "".join(f"\n  {' or '.join(one.names)}: {one.what}" for one in missing)
        raise InvalidFileError(
            f"{data}: {len(missing)} of the {len(needed)} files of {title} are missing:{lines}\n"
            "docs/reproduce-the-paper.md says where they come from"
        )
