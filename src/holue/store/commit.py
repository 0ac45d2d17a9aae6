"""Group commit: changes that wait at the same time are made durable together."""

from __future__ import annotations

import contextvars
import threading
import time as clock
from collections.abc import Callable
from typing import Any, TypeVar

from holue.errors import InvalidInputError

T = TypeVar("T")

PATIENCE = 0.25
"""The part of the last commit's time that a commit waits for callers seen before; a single caller never waits."""
LONGEST_PATIENCE = 0.002


class _Ticket:
    """A change that waits to be committed."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.context = work, contextvars.copy_context()  # another thread may carry it out
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self._sleeping = threading.Lock()  # cheaper to make than an Event
        self._sleeping.acquire()

    def wait(self) -> None:
        """Wait, once, until the change is done or its thread is to commit for all who wait."""
        self._sleeping.acquire()

    def wake(self) -> None:
        """Wake whoever waits, or will; once."""
        self._sleeping.release()


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
        self._arrived = threading.Condition()
        self._writing = threading.Lock()
        self._led = False  # somebody commits, or was told to
        self._callers = 1  # tickets seen at once at the end of the last commit
        self._seconds = 0.0  # that the last commit took

    def submit(self, work: Callable[[], T]) -> T:
        """Run the work in a transaction and return once it is durable."""
        ticket = _Ticket(work)
        with self._arrived:
            self._waiting.append(ticket)
            if len(self._waiting) >= self._callers:
                self._arrived.notify()
            lead, self._led = not self._led, True
        if not lead:
            ticket.wait()
        if not ticket.done:
            self._lead(ticket)
        if ticket.error is not None:
            raise ticket.error
        result: T = ticket.result
        return result

    def _lead(self, own: _Ticket) -> None:
        """Commit for all who wait, then wake them and name who commits next."""
        tickets: list[_Ticket] = []
        try:
            with self._writing:
                with self._arrived:
                    # Callers whose change was just committed are about to come back: a moment's patience halves the syncs.
                    wanted, patience = self._callers, min(self._seconds * PATIENCE, LONGEST_PATIENCE)
                    self._arrived.wait_for(lambda: len(self._waiting) >= wanted, patience)
                    tickets, self._waiting = self._waiting, []
                began = clock.perf_counter()
                self._commit_all(tickets)
                self._seconds = clock.perf_counter() - began
        finally:
            with self._arrived:
                if own in self._waiting:  # interrupted before its turn, and nobody waits for it any more
                    self._waiting.remove(own)
                self._callers = len(tickets) + len(self._waiting)
                following = self._waiting[0] if self._waiting else None
                self._led = following is not None
            for ticket in tickets:
                if ticket is not own:
                    ticket.wake()
            if following is not None:
                following.wake()

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
                    ticket.result = ticket.context.run(ticket.work)
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
