"""Cache directory: where this user keeps what can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def default_cache_directory() -> Path:
    """``HOLUE_CACHE``, else ``holue`` under the user's cache folder."""
    given = os.environ.get("HOLUE_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holue"
