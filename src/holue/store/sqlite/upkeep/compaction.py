"""Compaction: neighbouring small segments become one, without rows that no version can show any more."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from holue.errors import InvalidParameterError
from holue.store.commit import CommitQueue
from holue.store.sqlite.files.block import Block, block_bytes, join_blocks
from holue.store.sqlite.files.ranges import Range
from holue.store.sqlite.home import Home
from holue.store.values import NOBODY, Int64Array

SEGMENT_BYTES = 256 << 20
"""Segments are merged up to this size."""


@dataclass(frozen=True, eq=False)
class _Plan:
    """What to rewrite: groups of ranges, samples to leave out, samples whose subject is written into the segment anew."""

    file: int
    groups: list[list[Range]]
    dropped: Int64Array
    settled: Int64Array  # ascending
    owners: Int64Array


def compact(home: Home, queue: CommitQueue, forget_before: int | None) -> None:
    """Rewrite what is small or partly gone into a new file, outside of transactions, then name it in one."""
    plan: _Plan = queue.submit(lambda: _plan(home, forget_before))
    if not plan.groups:
        return
    written: list[tuple[Block, int]] = []
    offset = home.ranges.create(plan.file)
    for group in plan.groups:
        block = _rewrite(home, group, plan)
        if len(block):
            written.append((block, offset))
            offset = home.ranges.write_at(plan.file, offset, block)
    queue.submit(lambda: _swap(home, plan, written))
    old = {entry.file for group in plan.groups for entry in group}
    named: set[int | None] = queue.submit(lambda: {entry.file for entry in home.ranges.all()})
    for file in old - named:
        assert file is not None
        home.disk.remove(home.ranges.path(file))
    home.ranges.forget()


def _plan(home: Home, forget_before: int | None) -> _Plan:
    newest, oldest = home.tables.last_version(), home.tables.oldest_version()
    if forget_before is not None and not oldest <= forget_before <= newest:
        raise InvalidParameterError(f"forget_before must be a version from {oldest} to {newest}, got {forget_before}")
    home.ranges.flush_tail()
    if forget_before is not None:
        home.tables.forget_before(forget_before)
    unseen = """SELECT sample FROM moved WHERE NOT EXISTS (SELECT 1 FROM sample WHERE number = sample)
      AND NOT EXISTS (SELECT 1 FROM sample_past WHERE number = sample)"""
    dropped = [row[0] for row in home.database.run(unseen)]
    sure = """SELECT s.number, s.subject FROM moved m JOIN sample s ON s.number = m.sample
      WHERE NOT EXISTS (SELECT 1 FROM sample_past p WHERE p.number = m.sample) ORDER BY s.number"""
    pairs = np.array(home.database.run(sure), np.int64).reshape(-1, 2)
    touched = np.sort(np.array([*dropped, *pairs[:, 0]], np.int64))
    groups = _groups(home, touched)
    return _Plan(
        home.ranges.reserve(), groups, np.array(sorted(dropped), np.int64), pairs[:, 0].copy(), pairs[:, 1].copy()
    )


def _groups(home: Home, touched: Int64Array) -> list[list[Range]]:
    groups: list[list[Range]] = [[]]
    size = 0
    for entry in home.ranges.all():
        bytes_ = block_bytes(entry.n, home.dim)
        low, high = np.searchsorted(touched, [entry.first, entry.last + 1])
        if low == high and bytes_ > SEGMENT_BYTES // 2:
            groups.append([])
            size = 0
            continue
        if size + bytes_ > SEGMENT_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(entry)
        size += bytes_

    def worth(group: list[Range]) -> bool:
        if len(group) > 1:
            return True
        return any(np.diff(np.searchsorted(touched, [entry.first, entry.last + 1]))[0] for entry in group)

    return [group for group in groups if worth(group)]


def _rewrite(home: Home, group: list[Range], plan: _Plan) -> Block:
    joined = join_blocks([home.ranges.read(entry) for entry in group])
    place = np.searchsorted(joined.samples, plan.settled)
    inside = place < len(joined)
    place, settled, owners = place[inside], plan.settled[inside], plan.owners[inside]
    there = joined.samples[place] == settled
    joined.subjects[place[there]] = owners[there]
    return joined.take((joined.subjects != NOBODY) & ~np.isin(joined.samples, plan.dropped))


def _swap(home: Home, plan: _Plan, written: list[tuple[Block, int]]) -> None:
    many = home.database.run_many
    many("DELETE FROM range WHERE number = ?", ((entry.number,) for group in plan.groups for entry in group))
    for block, offset in written:
        home.ranges.name(block, plan.file, offset)
    many("DELETE FROM moved WHERE sample = ?", ((sample,) for sample in plan.dropped.tolist()))
    # A sample that has moved since the plan was made is still told by the tables, not by its segment.
    still = """DELETE FROM moved WHERE sample IN (SELECT value FROM json_each(?))
      AND NOT EXISTS (SELECT 1 FROM sample_past p WHERE p.number = sample)"""
    home.database.run(still, [json.dumps(plan.settled.tolist())])
    home.ranges.forget()
