"""holue: open-set recognition that knows when it is wrong.

>>> from holue import OpenSetRecognizer, UNKNOWN
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holue.errors import HolueError
    from holue.gallery.gallery import Gallery
    from holue.gallery.subjects import UNKNOWN
    from holue.live.opening import open
    from holue.recognition.answer.identifications import Identifications
    from holue.recognition.model.operating_point import OperatingPoint
    from holue.recognition.recognizer import OpenSetRecognizer

    __version__: str

# Silent unless the program that uses holue configures logging.
logging.getLogger("holue").addHandler(logging.NullHandler())

# Resolved on first use: importing holue stays instant, whatever it needs later.
_HOMES = {
    "UNKNOWN": "holue.gallery.subjects",
    "Gallery": "holue.gallery.gallery",
    "HolueError": "holue.errors",
    "Identifications": "holue.recognition.answer.identifications",
    "OpenSetRecognizer": "holue.recognition.recognizer",
    "OperatingPoint": "holue.recognition.model.operating_point",
    "open": "holue.live.opening",
}

__all__ = [
    "UNKNOWN",
    "Gallery",
    "HolueError",
    "Identifications",
    "OpenSetRecognizer",
    "OperatingPoint",
    "open",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("holue")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'holue' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
