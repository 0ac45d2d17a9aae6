"""Program: everything ``holue bench`` measures, in one process, as one dictionary that is also a JSON file."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from holue.artifact import write_text
from holue.bench.machine import load, machine
from holue.bench.sections.approximate import approximate_steps
from holue.bench.sections.binary import binary_steps
from holue.bench.sections.changes import change_steps
from holue.bench.sections.cluster import cluster_steps
from holue.bench.sections.cluster_growth import growth_steps
from holue.bench.sections.compressed import compressed_steps
from holue.bench.sections.evaluation import evaluation_steps
from holue.bench.sections.exact import exact_steps
from holue.bench.sections.faces import face_steps
from holue.bench.sections.live import live_steps
from holue.bench.sections.other_costs import other_cost_steps
from holue.bench.sections.peers import peer_steps
from holue.bench.sections.section import Result, Step, measured_sections
from holue.bench.sections.store import store_steps
from holue.bench.worlds.sizes import FULL, Sizes
from holue.errors import InvalidFileError, InvalidParameterError
from holue.progress import Progress

SECTIONS: dict[str, Callable[[Result, Sizes, int, int], Iterator[Step]]] = {
    "evaluation": evaluation_steps,  # first: its peak memory is that of the process so far
    "exact": exact_steps,
    "other-costs": other_cost_steps,
    "compressed": compressed_steps,
    "binary": binary_steps,
    "approximate": approximate_steps,
    "changes": change_steps,
    "faces": face_steps,
    "store": store_steps,
    "live": live_steps,
    "peers": peer_steps,
    "cluster": cluster_steps,
    "cluster-growth": growth_steps,
}
"""What can be measured on its own, in the order in which it is done."""
USUAL = ("exact", "other-costs")
"""What is measured unless something else is asked for: a quarter of an hour."""


def run(
    *,
    sections: Iterable[str] = USUAL,
    sizes: Sizes = FULL,
    rounds: int = 9,
    out: str | os.PathLike[str] | None = None,
    known: Result | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Measure ``sections`` at all ``sizes`` and return the numbers; with ``out`` also written there as JSON.

    The file is written after every step, so that an interrupted run leaves what it measured. Sections of an earlier run, given
    as ``known``, are kept unless they are measured anew; it must come from the same machine and packages.

    >>> from holue.bench.worlds.sizes import Sizes
    >>> tiny = Sizes(100, (8,), (1,), (1,), (50,), (8,), (1,), 8, 0, 2, 0.01, 0, 0, 0, 0)
    >>> result = run(sections=["exact"], sizes=tiny, rounds=1)
    >>> sorted(result)
    ['comparison', 'finished', 'growth', 'machine', 'mapped', 'measured', 'seconds', 'skipped']
    >>> sorted(run(sections=["other-costs"], sizes=tiny, rounds=1, known=result)["measured"])
    ['exact', 'other-costs']
    """
    wanted = check_sections(sections)
    result = _kept(known) | {"machine": machine()}
    measured, before = result["measured"], load()
    steps: deque[tuple[str, Step]] = deque()
    for name in wanted:
        own = list(SECTIONS[name](result, sizes, rounds, seed))
        steps += [(name, step) for step in own]
        measured[name] = {"load": before, "rounds": rounds, "seconds": 0.0, "finished": not own}
    total = len(steps)
    while steps:
        # Taken out of the queue: the last step of a section lets go of its gallery.
        name, (note, step) = steps.popleft()
        if progress is not None:
            progress(total - len(steps) - 1, total, note)
        started = time.perf_counter()
        step()
        measured[name]["seconds"] += time.perf_counter() - started
        measured[name]["finished"] = all(other != name for other, _ in steps)
        _sum_up(result)
        if out is not None:
            write(Path(out), result)
    _sum_up(result)
    return result


def check_sections(names: Iterable[str]) -> list[str]:
    """The sections by name, in the order in which they are measured; ``all`` is every one.

    >>> check_sections(["other-costs", "exact"])
    ['exact', 'other-costs']
    """
    asked = list(names)
    unknown = [name for name in asked if name not in SECTIONS and name != "all"]
    if unknown or not asked:
        raise InvalidParameterError(f"sections must be among {', '.join(SECTIONS)} and all, got {unknown or 'none'}")
    return [name for name in SECTIONS if name in asked or "all" in asked]


def write(path: Path, result: Result) -> None:
    """Write the numbers as JSON."""
    write_text(path, json.dumps(result, indent=1, allow_nan=False) + "\n")


def _kept(known: Result | None) -> Result:
    """What an earlier run measured here."""
    if known is None:
        return {"measured": {}}
    now = machine()
    other = {key: value for key, value in known["machine"].items() if key in now and value != now[key]}
    if other:
        raise InvalidFileError(
            f"these numbers were measured with {other}, here it is { ({key: now[key] for key in other}) }: "
            "numbers of different machines or packages do not go together; write to another file, or measure all sections"
        )
    return {key: value for key, value in known.items() if key != "rounds"} | {"measured": measured_sections(known)}


def _sum_up(result: Result) -> None:
    parts = result["measured"].values()
    result["seconds"] = sum(part["seconds"] for part in parts)
    result["finished"] = all(part["finished"] for part in parts)
