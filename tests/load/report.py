"""Report: the numbers of a load test as a page, with the verdicts on its targets."""

from __future__ import annotations

from typing import Any

NAMES = {"holue": "holue serve", "faiss": "FastAPI + FAISS flat", "pgvector": "PostgreSQL + pgvector, exact"}


def page(about: dict[str, Any], found: dict[str, Any]) -> str:
    """Tables of both kinds of loops, and what became of the targets."""
    library = found["library"]
    lines = [
        f"K = {about['subjects']:,} subjects, d = {about['dim']}, raw float32, one probe a request; every system on "
        f"{about['server_processors']} processor(s) and as many threads, the load generator on others "
        f"({about['generator_processors']}). Measured {about['date'][:10]} with {about['seconds']:g} seconds for each loop; "
        f"load average before: {about['load_before']:.1f} on {about['machine']['processors']} processors.",
        "",
        f"The library's own `identify`, without a service: one probe {_ms(library['1']['p50_ms'])} ms "
        f"(p99 {_ms(library['1']['p99_ms'])}), {library['1']['rate']:.0f} probes/s; in batches of 64 "
        f"{library['64']['rate']:.0f} probes/s. The generator asks a server that does nothing "
        f"{found['trivial']['closed']['64']['rate']:,.0f} times a second.",
        "",
        "| Closed loop | "
        + " | ".join(f"{n} clients" if n != "1" else "1 client" for n in found["holue"]["closed"])
        + " |",
        "|---|" + "---|" * len(found["holue"]["closed"]),
        *(_row(NAMES[name], found[name]["closed"]) for name in NAMES if name in found),
        "",
        "Each cell: answers/s · p50 · p99 in ms.",
        "",
        "| Open loop, of the highest closed rate | "
        + " | ".join(f"{float(n):.0%}" for n in found["holue"]["open"])
        + " |",
        "|---|" + "---|" * len(found["holue"]["open"]),
        *(_row(NAMES[name], found[name]["open"]) for name in NAMES if name in found),
        "",
        "Batches of 64 probes in a request: "
        + "; ".join(
            f"{n} client(s) {64 * each['rate']:.0f} probes/s, p50 {_ms(each['p50_ms'])} ms"
            for n, each in found["holue in batches"]["closed"].items()
        )
        + ".",
        "",
        "| Target | Measured | |",
        "|---|---|---|",
        *(f"| {target} | {value} | {'met' if met else '**missed**'} |" for target, value, met in verdicts(found)),
    ]
    return "\n".join(lines) + "\n"


def verdicts(found: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Each target, what was measured, and whether it is met."""
    library, closed = found["library"], found["holue"]["closed"]
    added = closed["1"]["p50_ms"] - library["1"]["p50_ms"]
    share = closed["64"]["rate"] / library["64"]["rate"]
    spread = closed["64"]["p99_ms"] / closed["64"]["p50_ms"]
    told = [
        ("one client: p50 at most 2 ms over the library", f"{added:.2f} ms over", added <= 2),
        ("64 clients: at least 0.6 × the library in batches of 64", f"{share:.2f} ×", share >= 0.6),
        ("64 clients: p99 under 4 × p50", f"{spread:.1f} ×", spread < 4),
    ]
    for name in ("faiss", "pgvector"):
        if name not in found:
            continue
        many = [n for n in closed if int(n) >= 16]
        rates = [closed[n]["rate"] / found[name]["closed"][n]["rate"] for n in many]
        waits = [closed[n]["p99_ms"] / found[name]["closed"][n]["p99_ms"] for n in many]
        ahead = all(rate > 1 for rate in rates) and all(wait < 1 for wait in waits)
        said = f"rate × {min(rates):.1f} or more, p99 × {max(waits):.2f} or less"
        told.append((f"ahead of {NAMES[name]} from 16 clients on, in rate and p99", said, ahead))
    failed = sum(each["failed"] for kind in ("closed", "open") for each in found["holue"][kind].values())
    told.append(("no request fails", f"{failed} failed", failed == 0))
    return told


def _row(name: str, loops: dict[str, Any]) -> str:
    cells = [f"{each['rate']:.0f} · {_ms(each['p50_ms'])} · {_ms(each['p99_ms'])}" for each in loops.values()]
    return f"| {name} | " + " | ".join(cells) + " |"


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"
