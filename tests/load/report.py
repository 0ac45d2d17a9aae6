"""Report: the numbers of a load test as a page, with the verdicts on its targets and what follows for the size of a machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from .capacity import capacity

NAMES = {"holue": "holue serve", "faiss": "FastAPI + FAISS flat", "pgvector": "PostgreSQL + pgvector, exact"}
BUSY = 0.1
"""Processors that other work may take before the page says that the machine was busy."""


def page(about: dict[str, Any], found: dict[str, Any]) -> str:
    """Tables of both kinds of loops, and what became of the targets."""
    rounds = found["rounds"]
    clients = list(rounds[0]["holue"])
    one, many = (_middle(rounds, "library", batch) for batch in ("1", "64"))
    return "\n".join(
        [
            f"K = {about['subjects']:,} subjects, d = {about['dim']}, raw float32, one probe a request; every system on "
            f"{about['server_processors']} processor(s) with as many threads, the load generator on others "
            f"({about['generator_processors']}). Each cell is the median of {about['rounds']} rounds of {about['seconds']:g} "
            f"seconds, in which the systems were asked in turn. Measured {about['date'][:10]}; the whole took "
            f"{about['took_s'] / 60:.0f} minutes.",
            "",
            _busy(about),
            "",
            f"The library's own `identify`, without a service: one probe {_ms(one('p50_ms'))} ms (p99 {_ms(one('p99_ms'))}), "
            f"{one('rate'):.0f} probes/s; in batches of 64 {many('rate'):.0f} probes/s. Of a processor's time it takes "
            f"{one('cpu_ms'):.1f} ms for one probe and {many('cpu_ms'):.2f} ms for a probe of 64. The generator asks a server "
            f"that does nothing {found['trivial']['rate']:,.0f} times a second.",
            "",
            "| Closed loop | " + " | ".join(f"{n} clients" if n != "1" else "1 client" for n in clients) + " |",
            "|---|" + "---|" * len(clients),
            *(_row(NAMES[name], [_middle(rounds, name, n) for n in clients]) for name in NAMES),
            "",
            "Each cell: answers/s · p50 · p99 in ms.",
            "",
            "| Processor time of an answer, ms | "
            + " | ".join(f"{n} clients" if n != "1" else "1 client" for n in clients)
            + " |",
            "|---|" + "---|" * len(clients),
            *(
                f"| {NAMES[name]} | " + " | ".join(f"{_middle(rounds, name, n)('cpu_ms'):.1f}" for n in clients) + " |"
                for name in NAMES
            ),
            "",
            "| Open loop, of the highest closed rate | "
            + " | ".join(f"{float(n):.0%}" for n in found["open"]["holue"])
            + " |",
            "|---|" + "---|" * len(found["open"]["holue"]),
            *(_row(NAMES[name], [each.__getitem__ for each in found["open"][name].values()]) for name in NAMES),
            "",
            "Batches of 64 probes in a request: "
            + "; ".join(
                f"{n} client(s) {64 * each('rate'):.0f} probes/s, p50 {_ms(each('p50_ms'))} ms"
                for n, each in ((n, _middle(rounds, "holue in batches", n)) for n in rounds[0]["holue in batches"])
            )
            + ".",
            "",
            "| Target | Measured | |",
            "|---|---|---|",
            *(f"| {target} | {value} | {'met' if met else '**missed**'} |" for target, value, met in verdicts(found)),
            "",
        ]
    )


def verdicts(found: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Each target, what was measured, and whether it is met: ratios within a round, the median of the rounds."""
    rounds = found["rounds"]

    def middle(value: Callable[[dict[str, Any]], float]) -> float:
        return median(value(each) for each in rounds)

    added = middle(lambda each: each["holue"]["1"]["p50_ms"] - each["library"]["1"]["p50_ms"])
    share = middle(lambda each: each["holue"]["64"]["rate"] / each["library"]["64"]["rate"])
    of_time = middle(lambda each: each["library"]["64"]["cpu_ms"] / each["holue"]["64"]["cpu_ms"])
    spread = middle(lambda each: each["holue"]["64"]["p99_ms"] / each["holue"]["64"]["p50_ms"])
    told = [
        ("one client: p50 at most 2 ms over the library", f"{added:.2f} ms over", added <= 2),
        (
            "64 clients: at least 0.6 × the library in batches of 64",
            f"{share:.2f} × ({of_time:.2f} × by processor time)",
            share >= 0.6,
        ),
        ("64 clients: p99 under 4 × p50", f"{spread:.1f} ×", spread < 4),
    ]
    for name in ("faiss", "pgvector"):
        many = [n for n in rounds[0]["holue"] if int(n) >= 16]
        rates, waits = (_against(rounds, name, many, value) for value in ("rate", "p99_ms"))
        ahead = min(rates) > 1 and max(waits) < 1
        said = f"rate × {min(rates):.1f} or more, p99 × {max(waits):.2f} or less"
        told.append((f"ahead of {NAMES[name]} from 16 clients on, in rate and p99", said, ahead))
    failed = sum(each["failed"] for one in rounds for each in one["holue"].values())
    failed += sum(each["failed"] for each in found["open"]["holue"].values())
    told.append(("no request fails", f"{failed} failed", failed == 0))
    return told


def _against(rounds: list[dict[str, Any]], peer: str, columns: list[str], value: str) -> list[float]:
    """Of the service, as a multiple of a peer's in the same round."""
    return [median(each["holue"][n][value] / each[peer][n][value] for each in rounds) for n in columns]


def remembered(memory: dict[str, Any]) -> str:
    """What became of the memory over many requests."""
    seen = memory["seen"]
    half = [each for each in seen if each["requests"] >= seen[-1]["requests"] / 2]
    low, high = (bound(each["bytes"] for each in half) / 2**20 for bound in (min, max))
    return (
        f"{seen[-1]['requests']:,} requests of 64 clients, K = {memory['subjects']:,}, d = {memory['dim']}: memory of its own "
        f"{seen[0]['bytes'] / 2**20:.0f} MiB before the first, {seen[-1]['bytes'] / 2**20:.0f} MiB after the last; over the "
        f"second half between {low:.1f} and {high:.1f} MiB, a slope of {memory['bytes_per_request']:.1f} bytes a request.\n"
    )


def _busy(about: dict[str, Any]) -> str:
    others, processors = about["others_busy"], about["machine"]["processors"]
    if others < BUSY:
        return f"Nothing else ran on the machine's {processors} processors."
    return (
        f"**The machine was busy**: other work took {others:.1f} of its {processors} processors meanwhile. Rates and times "
        "are therefore worse than on a free machine and differ from run to run; ratios within the run, and the processor time "
        "of an answer, are less disturbed."
    )


def _middle(rounds: list[dict[str, Any]], name: str, column: str) -> Callable[[str], float]:
    return lambda value: median(each[name][column][value] for each in rounds)


def _row(name: str, cells: list[Callable[[str], float]]) -> str:
    told = [f"{cell('rate'):.0f} · {_ms(cell('p50_ms'))} · {_ms(cell('p99_ms'))}" for cell in cells]
    return f"| {name} | " + " | ".join(told) + " |"


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def main() -> None:
    """Make the page of the documentation from what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=Path, default=Path("runs/load.json"))
    parser.add_argument("--memory", type=Path, default=Path("runs/load-memory.json"))
    parser.add_argument("--out", type=Path, default=Path("docs/service-load.md"))
    given = parser.parse_args()
    measured, memory = json.loads(given.load.read_text()), json.loads(given.memory.read_text())
    about, found = measured["about"], measured["found"]
    text = f"""# The service under load

How many answers a second does `holue serve` give, how long does one take, and how large a machine does a gallery need? This page
is made by `make load load-memory load-page` from its measurements: run it on your machine, with your sizes.

{page(about, found)}
## Memory over many requests

{remembered(memory)}
## Capacity

{capacity(about, found, memory)}"""
    given.out.write_text(text)


if __name__ == "__main__":
    main()
