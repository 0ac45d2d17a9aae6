"""Asking: one question to every shard at once; a second replica is asked where the first is slow or fails.

Each shard is asked at the replica that holds the version. If that has not answered after a few times the usual time, the next
replica is asked too, and the first answer counts (a *hedged* call). A shard of which nobody answers until the deadline is missing
from the answer; later questions do not wait for it until one of its replicas answers again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any

from holue.cluster.replica import Replica
from holue.cluster.shards.shard import Absent
from holue.errors import ArtifactError, HolueError

DEADLINE = 5.0
"""Seconds until a shard is given up, or ``SLOW`` times the usual time where that is longer."""
SLOW = 20.0
FIRST_DEADLINE = 60.0
"""Seconds for the first question of its kind, as long as somebody works on it: a shard may have to compile its loops."""
HEDGED_AFTER, HEDGED_LEAST, HEDGED_FIRST = 2.0, 0.02, 1.0
"""A second replica is asked after twice the usual time, at least 20 ms; after a second while nothing is known yet."""
PAUSE = 0.02


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

    replicas: list[Replica]
    arguments: tuple[Any, ...]
    started: dict[Future[Any], tuple[Replica, float]] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)  # ids of replicas that are being asked
    forced: set[int] = field(default_factory=set)  # ids of replicas asked once although they are suspect
    last_start: float = 0.0
    answer: Any = None
    done: bool = False


def ask_all(
    method: str,
    questions: Mapping[int, tuple[Any, ...]],
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
    inquiries = {shard: _Inquiry([], arguments) for shard, arguments in questions.items()}
    answers: dict[int, Any] = {}
    while True:
        now = time.monotonic()
        for shard, inquiry in inquiries.items():
            if not inquiry.done:
                inquiry.replicas = list(replicas_of(shard))
                _start(method, inquiry, feed, version, now, hedge, shard in given_up)
        open_ones = {shard: inquiry for shard, inquiry in inquiries.items() if not inquiry.done}
        for shard in [s for s, one in open_ones.items() if not one.started and s in given_up]:
            open_ones.pop(shard)  # nobody to wait for
        under_way = any(inquiry.started for inquiry in open_ones.values())
        until = last_moment if under_way else deadline
        if not open_ones or now >= until:
            break
        futures = [future for inquiry in open_ones.values() for future in inquiry.started]
        if not futures:
            time.sleep(PAUSE)
            continue
        finished, _ = wait(futures, timeout=min(hedge / 2, until - now, 0.25), return_when=FIRST_COMPLETED)
        for shard, inquiry in open_ones.items():
            for future in [one for one in inquiry.started if one in finished]:
                _finish(future, inquiry, usual, work)
            if inquiry.done:
                answers[shard] = inquiry.answer
                given_up.discard(shard)
    for shard, inquiry in inquiries.items():
        if not inquiry.done:
            given_up.add(shard)
            for replica, _ in inquiry.started.values():
                replica.failed("no answer until the deadline")
    return answers


def _start(
    method: str,
    inquiry: _Inquiry,
    feed: Callable[[Replica], Future[bool]],
    version: str,
    now: float,
    hedge: float,
    given_up: bool,
) -> None:
    """Ask another replica where none is being asked, or those that are take too long."""
    if inquiry.started and now - inquiry.last_start < hedge:
        return
    free = [one for one in inquiry.replicas if id(one) not in inquiry.asked and not one.suspect]
    if not free and not inquiry.started and not given_up:
        free = [one for one in inquiry.replicas if id(one) not in inquiry.forced]
        inquiry.forced.update(id(one) for one in free[:1])
    if not free:
        return
    if inquiry.started:
        for replica, started in inquiry.started.values():
            if now - started > hedge:
                replica.suspect = True  # until its late answer, or the next look, says otherwise
    ready = [one for one in free if version in one.known]
    replica = (ready or free)[0]
    inquiry.asked.add(id(replica))
    inquiry.last_start = now
    try:
        future = replica.call(method, *inquiry.arguments) if ready else feed(replica)
    except Exception as error:  # whatever Ray raises: the next replica is asked
        inquiry.asked.discard(id(replica))
        replica.failed(error)
        return
    inquiry.started[future] = replica, now


def _finish(future: Future[Any], inquiry: _Inquiry, usual: UsualTime, work: int) -> None:
    replica, started = inquiry.started.pop(future)
    inquiry.asked.discard(id(replica))
    error = future.exception()
    if isinstance(error, HolueError) and not isinstance(error, ArtifactError | OSError):
        raise error  # the question itself was wrong; another replica would say the same
    inquiry.last_start = 0.0
    if error is not None:
        replica.failed(error)
        return
    result = future.result()
    if isinstance(result, Absent):
        replica.answered(result.known)
    elif result is False:  # it could not be brought to the version
        replica.failed("does not take the version")
    elif result is not True:
        replica.suspect = False
        usual.note(work, time.monotonic() - started)
        inquiry.answer, inquiry.done = result, True
