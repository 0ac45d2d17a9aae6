"""OpenCV: imported where it is first needed, on one thread and without its warnings."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from holue.errors import MissingDependencyError


@cache
def opencv() -> ModuleType:
    """``cv2``, or an error with the install line.

    OpenCV's threads are one setting of the whole process. It is set to one: photographs are small work, and services and
    batches run several at once.
    """
    try:
        import cv2
    except ImportError as error:
        raise MissingDependencyError("opencv-python-headless", "embed") from error
    cv2.setNumThreads(1)
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)
    return cv2
