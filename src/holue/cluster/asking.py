"""Asking: one question to every shard at once; a second replica is asked where the first is slow or fails.

Each shard is asked at the replica that holds the version. If that has not answered after a few times the usual time, the next
replica is asked too, and the first answer counts (a *hedged* call). A shard of which nobody answers until the deadline is missing
from the answer; later questions do not wait for it until one of its replicas answers again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from holue.cluster.replica import Replica
from holue.cluster.shards.absent import Absent
from holue.cluster.shards.packed import unpacked
from holue.errors import ArtifactError, HolueError

DEADLINE = 5.0
"""Seconds until a shard is given up, or ``SLOW`` times the usual time where that is longer."""
SLOW = 20.0
FIRST_DEADLINE = 60.0
"""Seconds for the first question of its kind, as long as somebody works on it: a shard may have to compile its loops."""
HEDGED_AFTER, HEDGED_LEAST, HEDGED_FIRST = 2.0, 0.01, 1.0
"""A second replica is asked after twice the usual time, at least 10 ms; after a second while nothing is known yet."""
LOOK_EVERY, HEDGED_LOOKS = 0.02, 4
"""Seconds between looks at what else could be asked, at most; at least so many looks until a second replica is due."""


class UsualTime:
    """How long a question takes, as a moving average per unit of work: seconds = fixed part + slope × work."""

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def note(self, work: int, seconds: float) -> None:
        """A question of so many probes took so long."""
        key = work.bit_length()
        before = self._seconds.get(key)
        self._seconds[key] = seconds if before is None else 0.8 * before + 0.2 * min(seconds, 4 * before)

    def of(self, work: int) -> float | None:
        """What a question of so many probes will take; None where nothing like it was asked before."""
        return self._seconds.get(work.bit_length())


@dataclass(eq=False)
class _Inquiry:
    """Where the question to one shard stands."""

    shard: int
    question: tuple[bytes, ...]
    started: dict[Future[Any], tuple[Replica, float]] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)  # ids of replicas that are being asked
    forced: set[int] = field(default_factory=set)  # ids of replicas asked once although they are suspect
    last_start: float = 0.0


@dataclass(eq=False)
class _Round:
    """One question to all shards; answers come through ``arrived``, so that waiting for one costs the same among many."""

    method: str
    replicas_of: Callable[[int], Sequence[Replica]]
    feed: Callable[[Replica], Future[bool]]
    version: str
    hedge: float
    arrived: SimpleQueue[tuple[_Inquiry, Future[Any]]] = field(default_factory=SimpleQueue)

    def start(self, inquiry: _Inquiry, now: float, *, force: bool) -> None:
        """Ask another replica where none is being asked, or those that are take too long."""
        if inquiry.started and now - inquiry.last_start < self.hedge:
            return
        replicas = self.replicas_of(inquiry.shard)
        free = [one for one in replicas if id(one) not in inquiry.asked and not one.suspect]
        if not free and not inquiry.started and force:
            free = [one for one in replicas if id(one) not in inquiry.forced]
            inquiry.forced.update(id(one) for one in free[:1])
        if not free:
            return
        for replica, started in inquiry.started.values():
            if now - started > self.hedge:
                replica.suspect = True  # until its late answer, or the next look, says otherwise
        ready = [one for one in free if self.version in one.known]
        replica = (ready or free)[0]
        inquiry.asked.add(id(replica))
        inquiry.last_start = now
        try:
            future = replica.call(self.method, *inquiry.question) if ready else self.feed(replica)
        except Exception as error:  # whatever Ray raises: the next replica is asked
            inquiry.asked.discard(id(replica))
            replica.failed(error)
            return
        inquiry.started[future] = replica, now
        future.add_done_callback(lambda done: self.arrived.put((inquiry, done)))

    def wait(self, seconds: float) -> list[tuple[_Inquiry, Future[Any]]]:
        """What has arrived since, waiting until something does."""
        found = []
        with suppress(Empty):
            found.append(self.arrived.get(timeout=seconds))
            while True:
                found.append(self.arrived.get_nowait())
        return found


def ask_all(
    method: str,
    questions: Mapping[int, tuple[bytes, ...]],
    replicas_of: Callable[[int], Sequence[Replica]],
    feed: Callable[[Replica], Future[bool]],
    version: str,
    usual: UsualTime,
    work: int,
    given_up: set[int],
) -> dict[int, Any]:
    """The answer of each shard that gave one; ``given_up`` are those not worth waiting for, and grows and shrinks here."""
    begin = time.monotonic()
    expected = usual.of(work)
    deadline = begin + max(DEADLINE, SLOW * (expected or 0.0))
    hedge = HEDGED_FIRST if expected is None else max(HEDGED_LEAST, HEDGED_AFTER * expected)
    last_moment = deadline if expected is not None else max(deadline, begin + FIRST_DEADLINE)
    asking = _Round(method, replicas_of, feed, version, hedge)
    inquiries = {shard: _Inquiry(shard, question) for shard, question in questions.items()}
    open_ones, to_start = dict(inquiries), list(inquiries.values())
    answers: dict[int, Any] = {}
    next_look = begin
    while True:
        now = time.monotonic()
        if now >= next_look:
            to_start, next_look = list(open_ones.values()), now + min(hedge / HEDGED_LOOKS, LOOK_EVERY)
        for inquiry in to_start:
            asking.start(inquiry, now, force=inquiry.shard not in given_up)
            if not inquiry.started and inquiry.shard in given_up:
                open_ones.pop(inquiry.shard)  # nobody to wait for
        until = last_moment if any(inquiry.started for inquiry in open_ones.values()) else deadline
        if not open_ones or now >= until:
            break
        to_start = []
        for inquiry, future in asking.wait(max(0.0, min(next_look, until) - now)):
            if inquiry.shard not in open_ones:
                continue
            answer = _taken(future, inquiry, usual, work)
            if answer is None:
                to_start.append(inquiry)
            else:
                answers[inquiry.shard] = answer
                open_ones.pop(inquiry.shard)
                given_up.discard(inquiry.shard)
    for shard in inquiries.keys() - answers.keys():
        given_up.add(shard)
        for replica, _ in inquiries[shard].started.values():
            replica.failed("no answer until the deadline")
    return answers


def _taken(future: Future[Any], inquiry: _Inquiry, usual: UsualTime, work: int) -> Any:
    """The answer to an inquiry, or None where it has to be asked again: of another replica, or of this one, now fed."""
    replica, started = inquiry.started.pop(future)
    inquiry.asked.discard(id(replica))
    inquiry.last_start = 0.0
    error = future.exception()
    if isinstance(error, HolueError) and not isinstance(error, ArtifactError | OSError):
        raise error  # the question itself was wrong; another replica would say the same
    if error is not None:
        replica.failed(error)
        return None
    result = future.result()
    if isinstance(result, bool):  # it was fed
        if not result:
            replica.failed("does not take the version")
        return None
    answer = unpacked([result])
    if isinstance(answer, Absent):
        replica.answered(answer.known)
        return None
    replica.suspect = False
    usual.note(work, time.monotonic() - started)
    return answer
