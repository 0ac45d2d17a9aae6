"""Head: a small file that repeats the newest acknowledged version, as a witness.

SQLite ignores a damaged end of its write-ahead log without a word, and acknowledged changes with it. The head is written
after the commit and never synced: it can lag behind the database, which means nothing, but never lead, which means that
changes are missing.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

from holue.store.sqlite.files.disk import Disk

HEAD = "head"
_LAYOUT = struct.Struct("<8sqI")  # no padding: little-endian layouts have none
_MAGIC = b"holuehed"


def write_head(disk: Disk, head: Path, version: int) -> None:
    """Note the newest version in the file ``head`` of a home."""
    start = _MAGIC + struct.pack("<q", version)
    disk.write(head, 0, start + struct.pack("<I", zlib.crc32(start)))


def read_head(home: Path) -> int | None:
    """The version noted last; None where there is none or it cannot be read."""
    try:
        magic, version, crc = _LAYOUT.unpack((home / HEAD).read_bytes()[: _LAYOUT.size])
    except (OSError, struct.error):
        return None
    return int(version) if magic == _MAGIC and crc == zlib.crc32(_MAGIC + struct.pack("<q", version)) else None
