"""Group commit: changes that wait at the same time are made durable together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from holue.errors import InvalidInputError

T = TypeVar("T")


class _Ticket:
    """A change that waits to be committed."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False


class CommitQueue:
    """Threads queue up; whoever gets the lock first commits for all who wait.

    ``work`` raises an InvalidInputError before it has written anything, or writes all of its change; so one bad change
    does not disturb the others in the same transaction. ``begin``, ``commit`` and ``rollback`` are the home's;
    ``explain`` turns its errors into ours.

    >>> queue = CommitQueue(lambda: None, lambda: None, lambda: None)
    >>> queue.submit(lambda: 7)
    7
    """

    def __init__(
        self,
        begin: Callable[[], None],
        commit: Callable[[], None],
        rollback: Callable[[], None],
        explain: Callable[[BaseException], BaseException] = lambda error: error,
    ) -> None:
        self._begin, self._commit, self._rollback, self._explain = begin, commit, rollback, explain
        self._waiting: list[_Ticket] = []
        self._guard = threading.Lock()
        self._writing = threading.Lock()

    def submit(self, work: Callable[[], T]) -> T:
        """Run the work in a transaction and return once it is durable."""
        ticket = _Ticket(work)
        with self._guard:
            self._waiting.append(ticket)
        with self._writing:
            if not ticket.done:
                with self._guard:
                    tickets, self._waiting = self._waiting, []
                self._commit_all(tickets)
        if ticket.error is not None:
            raise ticket.error
        result: T = ticket.result
        return result

    def alone(self, work: Callable[[], T]) -> T:
        """Run the work while no transaction is open and none can begin."""
        with self._writing:
            return work()

    def _commit_all(self, tickets: list[_Ticket]) -> None:
        written = []
        try:
            self._begin()
            for ticket in tickets:
                try:
                    ticket.result = ticket.work()
                    written.append(ticket)
                except InvalidInputError as error:
                    ticket.error = error
            if written:
                self._commit()
            else:
                self._rollback()
        except BaseException as error:
            for ticket in tickets:
                ticket.error = ticket.error or self._explain(error)
            self._rollback()
        finally:
            for ticket in tickets:
                ticket.done = True
