"""Reference: what a change is made for, for instance the id of a request; kept with the change, in its transaction.

Who keeps a log beside a store can find out after a crash which changes were made, and add the rows that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_reference: ContextVar[str | None] = ContextVar("reference", default=None)
CHANGE = "change"
"""The verb of an operation that names the reference of a change; without a reference there is none."""


def current_reference() -> str | None:
    """What changes of this thread or task are made for."""
    return _reference.get()


@contextmanager
def made_for(reference: str) -> Iterator[None]:
    """Changes inside are made for ``reference``.

    >>> from holue.store.memory import MemoryStore
    >>> store = MemoryStore(dim=2)
    >>> with made_for("request-17"):
    ...     enrolled = store.enroll([[1, 0]], ["ann"])
    >>> [(one.verb, dict(one.detail)) for one in store.operations()]
    [('change', {'version': 1, 'kind': 'enroll', 'request': 'request-17'})]
    """
    token = _reference.set(reference)
    try:
        yield
    finally:
        _reference.reset(token)


def referred(detail: dict[str, object]) -> dict[str, object]:
    """The detail of an operation with the reference that it is made for."""
    reference = _reference.get()
    return detail if reference is None else {**detail, "request": reference}
