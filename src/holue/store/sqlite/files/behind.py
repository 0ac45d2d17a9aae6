"""Behind: one piece of work in another thread, while its caller goes on; whoever waits for it gets its error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType


class Behind:
    """Inside its context, work runs beside the caller; at the end of the context it is done. Outside, it runs at once.

    >>> done = []
    >>> with Behind() as behind:
    ...     behind.run(lambda: done.append(1))
    >>> done
    [1]
    """

    def __init__(self) -> None:
        self._inside = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Behind:
        self._inside = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside = False
        self._join(error)

    def run(self, work: Callable[[], None]) -> None:
        """Start work, once what was started before is done."""
        if not self._inside:
            work()
            return
        self._join(None)

        def noting_errors() -> None:
            try:
                work()
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=noting_errors)
        self._thread.start()

    def _join(self, other: BaseException | None) -> None:
        if self._thread is not None:
            self._thread.join()
        found, self._thread, self._error = self._error, None, None
        if found is not None and other is None:
            raise found
