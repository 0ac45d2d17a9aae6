"""Disk: room for a gallery in the temporary directory."""

from __future__ import annotations

import shutil
import tempfile


def lack_of_room(n_bytes: int) -> str | None:
    """Why a file of so many bytes cannot be made, or None if it can.

    >>> lack_of_room(10**18)[:45]
    'it takes 1000000000.0 GB of the temporary dir'
    """
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free >= 1.2 * n_bytes:
        return None
    return f"it takes {n_bytes / 1e9:.1f} GB of the temporary directory, which has {free / 1e9:.1f} GB free"
