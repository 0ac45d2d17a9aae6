"""Binary page: the part of the speed page about one bit per coordinate."""

from __future__ import annotations

from holue.bench.page.markdown import cut, distinct, number, spaced, table
from holue.bench.sections.section import Result, Row

SYSTEMS = {"holue": "float32", "holue int8": "int8", "holue binary": "binary", "faiss rabitq": "FAISS RaBitQ"}


def binary_part(found: Result) -> list[str]:
    """Times of every gallery and batch, and what the evidence is worth; nothing without rows."""
    if not found or not found["speed"]:
        return []
    return [
        "One bit per coordinate (`binary`) in turn with holue's float32 and int8 scans and with FAISS's `IndexRaBitQFastScan`, "
        "whose best 64 are scored again (the best subject alone, without any sum). Half of the probes show somebody enrolled, at "
        "cosines from the threshold up; the threshold accepts one in a hundred strangers (see "
        "[Large galleries](large-galleries.md)).",
        "",
        *_speed(found["speed"]),
        "",
        "Decisions and sums against the exact scan (within: three standard errors; at κ and κ/T):",
        "",
        *_accuracy(found["accuracy"]),
    ]


def _speed(rows: list[Row]) -> list[str]:
    lines = []
    for world, subjects, dim, probes, threads in distinct(rows, "world", "subjects", "dim", "probes", "threads"):
        place = {"world": world, "subjects": subjects, "dim": dim, "probes": probes, "threads": threads}
        here = {row["system"]: row for row in rows if place.items() <= row.items()}
        times = [number(here.get(name, {}).get("median_ms"), 2) for name in SYSTEMS]
        faster = cut(here.get("holue binary", {}).get("times_faster"))
        lines.append((world, spaced(subjects), str(dim), str(probes), str(threads), *times, faster))
    head = (
        "gallery",
        "K",
        "d",
        "probes",
        "threads",
        *(f"{name}, ms" for name in SYSTEMS.values()),
        "binary, times faster",
    )
    return table(head, lines, "l" + "r" * (len(head) - 1))


def _accuracy(rows: list[Row]) -> list[str]:
    def share(value: float) -> str:
        return f"{100 * value:.2f} %"

    lines = []
    for row in rows:
        within = [
            share(min(row[f"{kind}_{who}"])) for who in ("mated", "strangers") for kind in ("within", "mean_within")
        ]
        faiss = share(row["faiss_same_best"]) if "faiss_same_best" in row else "–"
        lines.append(
            (row["world"], spaced(row["subjects"]), str(row["dim"]), spaced(row["probes"]), f"{row['threshold']:.3f}",
             share(row["same_decisions"]), share(row["scanned_exactly"]), *within, faiss, f"1/{row['bytes_ratio']:.1f}")
        )  # fmt: skip
    head: tuple[str, ...] = (
        "gallery",
        "K",
        "d",
        "probes",
        "threshold",
        "same decisions",
        "scanned exactly",
        "log-mass within, mated",
    )
    head += (
        "mean within, mated",
        "log-mass within, strangers",
        "mean within, strangers",
        "FAISS finds the best",
        "bytes",
    )
    return table(head, lines, "l" + "r" * (len(head) - 1))
