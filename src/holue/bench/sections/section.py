"""Section: a part of the benchmark that is measured on its own, step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Result = dict[str, Any]
Row = dict[str, Any]
Step = tuple[str, Callable[[], None]]
"""What is measured, in words, and the measuring itself, which adds to the result."""


def measured_sections(result: Result) -> dict[str, Result]:
    """Of every section that was measured: the machine's load before it, its rounds and seconds, and whether it came to its end.

    Files from before sections could be added hold one run for everything.
    """
    if "measured" in result:
        return dict(result["measured"])
    run = {"load": result["machine"].get("load")} | {key: result[key] for key in ("rounds", "seconds", "finished")}
    return {"exact": run, "other-costs": run | {"seconds": 0.0}}
