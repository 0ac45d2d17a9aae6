"""Recovery: what an interrupted writer left behind is cut off before anything is written."""

from __future__ import annotations

import shutil

from holue.store.sqlite.files.block import block_bytes
from holue.store.sqlite.home import SEGMENTS, SNAPSHOTS, Home


def cut_off(home: Home) -> None:
    """Cut segment files after their last named range, and delete files and snapshots that no transaction names."""
    ends: dict[int, int] = {}
    for entry in home.ranges.all():
        if entry.file is not None:
            ends[entry.file] = max(ends.get(entry.file, 0), entry.offset + block_bytes(entry.n, home.dim))
    named = {home.ranges.path(file): end for file, end in ends.items()}
    for path in sorted((home.path / SEGMENTS).iterdir()):
        if path not in named:
            home.disk.remove(path)
        elif path.stat().st_size > named[path]:
            home.disk.truncate(path, named[path])
    for path in (home.path / SNAPSHOTS).iterdir():
        if path.name.startswith("."):
            shutil.rmtree(path)
