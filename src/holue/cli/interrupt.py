"""Interrupt: Ctrl-C ends a command with exit code 130, wherever it arrives."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

INTERRUPTED = 130
"""128 and the number of the signal, as shells have it."""
AGAIN = 0.05
"""Seconds after which an interrupt that was lost is sent again."""


@contextmanager
def quitting() -> Iterator[None]:
    """Quit at once on Ctrl-C: for the time of imports, in which there is nothing to tidy up and interrupts get lost."""
    earlier = signal.signal(signal.SIGINT, _quit)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)


def send_lost_interrupts_again() -> None:
    """Python drops an interrupt that arrives inside a callback (of a module lock, of a weak reference): send it again."""
    earlier = sys.unraisablehook

    def hook(lost: Any) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            earlier(lost)
            return
        timer = threading.Timer(AGAIN, _thread.interrupt_main)  # later: this is still the callback
        timer.daemon = True
        timer.start()

    sys.unraisablehook = hook


def _quit(*_: object) -> None:
    os._exit(INTERRUPTED)
