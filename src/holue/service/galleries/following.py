"""Following: a thread that has a gallery follow what other processes write to the same server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from holue.errors import HolueError
from holue.live.live_gallery import LiveGallery

logger = logging.getLogger(__name__)

SECONDS = 0.4
"""Between two looks at the server, which wakes us at a change besides: another process's is visible within one second."""

RECOVER_SECONDS = 60.0
"""Between two looks for rows of the audit log that another process's crash left out."""


class Following:
    """Runs until it is stopped; while the server is gone the gallery answers from its copy."""

    def __init__(self, live: LiveGallery, name: str, recover: Callable[[], None]) -> None:
        self._live, self._name, self._recover = live, name, recover
        self._wait: Callable[[int, float], int] | None = getattr(live.store, "wait", None)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"follow-{name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        gone, looked = False, time.monotonic()
        while not self._stopped.is_set():
            if gone or self._wait is None:
                self._stopped.wait(SECONDS)
            else:
                self._wait(self._live.version, SECONDS)
            if self._stopped.is_set():
                return
            try:
                self._live.refresh()
                if time.monotonic() - looked > RECOVER_SECONDS:
                    looked = time.monotonic()
                    self._recover()
                gone = False
            except HolueError:
                if not gone:
                    logger.warning("the gallery's server cannot be reached", extra={"gallery": self._name})
                gone = True
