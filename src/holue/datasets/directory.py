"""Data directory: where the data sets are that do not come with the package."""

from __future__ import annotations

import os
from pathlib import Path


def data_directory() -> Path:
    """``HOLUE_DATA``, or ``../shared/data`` beside a checkout of this repository."""
    given = os.environ.get("HOLUE_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[4] / "shared" / "data"
