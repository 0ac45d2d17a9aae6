"""NodeJoin: every enrolled subject or sample compared with all others, as tasks on the nodes of Ray.

The audit and leave-one-out calibration make templates of their own, without the sample or the fault they ask about, so the rows
of the shards do not serve. The rows go into the object store of Ray in parts, and are gone from it afterwards. A task compares
some groups of probes with one part; Ray runs it again on another node where its node is lost. Evidence is merged in the order of
the parts, and groups are those of one machine, so the answer is too, bit for bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from holue.cluster.engine import ray
from holue.cluster.nodes import nodes
from holue.evidence.evidence import Evidence, merge
from holue.evidence.leave_one_out import MASKED_SUBJECTS, Group, Question, evidence_of_rows
from holue.gallery.embeddings import FloatArray

PART_BYTES = 1 << 25
"""Bytes of rows in a part, 32 MB: a task reads one."""
GROUPS_PER_TASK = 8
TASKS_PER_PROCESSOR = 2
"""Tasks under way: one works while the next waits for its rows."""


class NodeJoin:
    """Compares groups of probes with rows on the nodes; ``tasks`` counts what it had them do."""

    def __init__(self) -> None:
        self.tasks = 0

    def __call__(self, groups: Sequence[Group], rows: FloatArray, question: Question) -> list[Evidence]:
        """The evidence of all rows about each group."""
        engine = ray()
        compare = engine.remote(num_cpus=1, scheduling_strategy="SPREAD")(_compare)
        most = TASKS_PER_PROCESSOR * max(1, sum(node.processors for node in nodes()))
        per = max(1, PART_BYTES // (rows.shape[1] * rows.itemsize * MASKED_SUBJECTS)) * MASKED_SUBJECTS
        found: list[list[Evidence]] = [[] for _ in groups]
        under_way: deque[tuple[int, Any]] = deque()

        def take() -> None:
            first, task = under_way.popleft()
            for place, evidence in enumerate(engine.get(task), start=first):
                found[place].append(evidence)

        for begin in range(0, len(rows), per):
            part = engine.put(np.ascontiguousarray(rows[begin : begin + per]))
            for first in range(0, len(groups), GROUPS_PER_TASK):
                some = list(groups[first : first + GROUPS_PER_TASK])
                under_way.append((first, compare.remote(some, part, begin, question)))
                self.tasks += 1
                if len(under_way) >= most:
                    take()
        while under_way:
            take()
        return [reduce(merge, parts) for parts in found]


def _compare(groups: list[Group], rows: FloatArray, begin: int, question: Question) -> list[Evidence]:
    with threadpool_limits(1):
        # What Ray passes is read-only, which would have every loop compiled once more.
        own = [Group(np.array(one.probes), np.array(one.own), one.first, one.last) for one in groups]
        return [evidence_of_rows(group, np.array(rows), begin, question, 1) for group in own]
