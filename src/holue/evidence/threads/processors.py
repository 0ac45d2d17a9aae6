"""Processors: how many this process may use, which in a container can be fewer than the machine has."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def available_processors() -> int:
    """The processors in the process's affinity mask, or those its cgroup's quota pays for, if that is fewer; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(max(min(allowed, _processors_of_quota()), 1))


@cache
def _processors_of_quota() -> float:
    """Processor time per time, rounded up; infinite without a quota (cgroup version 2)."""
    try:
        quota, period = _QUOTA.read_text("ascii").split()
        return math.inf if quota == "max" else math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf
