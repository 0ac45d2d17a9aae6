"""Feeding: the step that brings a replica to a version: a change since one it holds, or else all rows of its shard."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from holue.cluster.replica import Replica
from holue.cluster.shards.message import Message, pieces
from holue.cluster.shards.stripes import of_shard
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Numbers

MESSAGES_UNDER_WAY = 64
"""Messages that may be on their way at once: about 4 MB."""
PATIENCE = 60.0
"""Seconds that a message may take."""


@dataclass(frozen=True, eq=False)
class Difference:
    """Whom the changes between two versions concern, and whether somebody was erased in them."""

    numbers: Numbers
    erased: bool = False


Since = Callable[[str, str], Difference | None]
"""The difference between two versions; None where it cannot be told, and all rows have to come."""


@dataclass(frozen=True, eq=False)
class VersionToServe:
    """A version by name, and its gallery, whose rows are where this process has them; None where nobody is enrolled."""

    name: str
    gallery: Gallery
    since: Since


def bring(replica: Replica, n_shards: int, wanted: VersionToServe) -> bool:
    """Have a replica hold a version; whether it does. Waits until the last piece was taken."""
    if wanted.name in replica.known:
        return True
    # From the version it told of last; only where it no longer has that one it is asked what it holds.
    tried = replica.known[-1:]
    if tried and _brought(replica, n_shards, wanted, tried):
        return True
    known = tuple(replica.call("about").result(PATIENCE)["versions"])
    replica.answered(known)
    if wanted.name in known:
        return True
    return _brought(replica, n_shards, wanted, (*reversed(known), None))


def _brought(replica: Replica, n_shards: int, wanted: VersionToServe, bases: Sequence[str | None]) -> bool:
    """Whether a replica takes the version from one of the versions that it may hold, or from nothing."""
    for base in bases:
        messages = _step(replica.shard, n_shards, wanted, base)
        if messages is None:
            continue
        _send(replica, messages)
        if wanted.name in replica.known:
            return True
    return False


def _step(shard: int, n_shards: int, wanted: VersionToServe, base: str | None) -> Iterator[Message] | None:
    gallery, step = wanted.gallery, secrets.token_hex(8)
    if base is None:
        numbers = of_shard(gallery.numbers, shard, n_shards)
        return pieces(step, None, wanted.name, np.empty(0, np.int64), numbers, gallery)
    difference = wanted.since(base, wanted.name)
    if difference is None:
        return None
    gone = of_shard(np.unique(difference.numbers), shard, n_shards)
    coming = gone[_enrolled(gallery, gone)]
    return pieces(step, base, wanted.name, gone, coming, gallery, erased=difference.erased)


def _send(replica: Replica, messages: Iterator[Message]) -> None:
    under_way: deque[Future[Any]] = deque()
    for message in messages:
        under_way.append(replica.call("receive", message))
        if len(under_way) > MESSAGES_UNDER_WAY:
            under_way.popleft().result(PATIENCE)
    while under_way:
        replica.answered(tuple(under_way.popleft().result(PATIENCE)))


def _enrolled(gallery: Gallery, numbers: Numbers) -> Any:
    there = np.zeros(len(numbers), dtype=bool)
    for part in gallery.parts:
        there |= part.rows_of(numbers) >= 0
    return there
