"""CompileNotice: one sentence on the terminal before a first call waits for the compiler."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from numba.core.event import Event, Listener, register

SENTENCE = (
    "holue compiles its inner loops for this machine: the first call takes some seconds longer, later processes do not wait "
    "(holue warm-up compiles everything now)"
)


class CompileNotice(Listener):
    """Says it once in a process, and only where somebody looks: on a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.said = False
        self._stream = stream

    def on_start(self, event: Event) -> None:
        """Before a function is compiled; one that is in the cache gives no event."""
        function: Any = event.data["dispatcher"].py_func
        stream = sys.stderr if self._stream is None else self._stream
        if self.said or stream is None or not function.__module__.startswith("holue."):
            return
        self.said = True
        if stream.isatty():
            print(SENTENCE, file=stream, flush=True)

    def on_end(self, event: Event) -> None:
        """Nothing to say."""


NOTICE = CompileNotice()
register("numba:compile", NOTICE)  # type: ignore[no-untyped-call]
