"""Binary page: the part of the speed page about one bit per coordinate."""

from __future__ import annotations

from holue.bench.page.markdown import cut, distinct, number, spaced, table
from holue.bench.sections.section import Result, Row

SYSTEMS = {"holue": "float32", "holue int8": "int8", "holue binary": "binary", "faiss rabitq": "FAISS RaBitQ"}


WHO = {"mated": "one, mated", "strangers": "one, a stranger"}


def binary_part(found: Result) -> list[str]:
    """Times of every gallery and batch, and what the evidence is worth; nothing without rows."""
    if not found or not found["speed"]:
        return []
    return [
        '`search="binary"` (one bit per coordinate, or two where one would leave too many rows to score; see '
        "[Large galleries](large-galleries.md)) in turn with holue's float32 and int8 scans and with FAISS's "
        "`IndexRaBitQFastScan`, which scores again as many as it takes to decide as often right (the best subject alone, without "
        "any sum). Mated probes show somebody enrolled, at cosines from the threshold up; the threshold accepts one in a hundred "
        "strangers. In batches half of the probes are strangers.",
        "",
        *_speed(found),
        "",
        "Decisions and sums against the exact scan, and memory (within: three standard errors, the worse of κ and κ/T):",
        "",
        *_accuracy(found["accuracy"]),
    ]


def _speed(found: Result) -> list[str]:
    bits = {(row["world"], row["subjects"], row["dim"]): row["bits"] for row in found["accuracy"]}
    rows, lines = found["speed"], []
    for place in distinct(rows, "world", "subjects", "dim", "threads", "probes", "who"):
        world, subjects, dim, threads, probes, who = place
        names = ("world", "subjects", "dim", "threads", "probes", "who")
        here = {row["system"]: row for row in rows if dict(zip(names, place)).items() <= row.items()}
        times = [number(here.get(name, {}).get("median_ms"), 2) for name in SYSTEMS]
        ours = here["holue binary"]["median_ms"]
        faster = [
            cut(here[name]["median_ms"] / ours) if name in here else "–" for name in SYSTEMS if name != "holue binary"
        ]
        lines.append(
            (world, spaced(subjects), str(dim), str(bits[world, subjects, dim]), str(threads), WHO.get(who, str(probes)),
             *times, *faster)
        )  # fmt: skip
    head: tuple[str, ...] = (
        "gallery",
        "K",
        "d",
        "bits",
        "threads",
        "probes",
        *(f"{name}, ms" for name in SYSTEMS.values()),
    )
    head += ("binary is faster than float32, times", "than int8", "than FAISS")
    return table(head, lines, "l" + "r" * (len(head) - 1))


def _accuracy(rows: list[Row]) -> list[str]:
    def share(value: float) -> str:
        return f"{100 * value:.2f} %"

    lines = []
    for row in rows:
        within = [
            share(min(row[f"{kind}_{who}"])) for who in ("mated", "strangers") for kind in ("within", "mean_within")
        ]
        faiss = (
            f"{row['faiss_reranked']}: {share(row['faiss_same_decisions'])}" if "faiss_same_decisions" in row else "–"
        )
        needed = "–" if row["one_bit_share"] is None else share(row["one_bit_share"])
        lines.append(
            (row["world"], spaced(row["subjects"]), str(row["dim"]), needed, str(row["bits"]), spaced(row["probes"]),
             f"{row['threshold']:.3f}", share(row["same_decisions"]), share(row["scanned_exactly"]), *within, faiss,
             number(row["float32_mb"], 0), number(row["int8_mb"], 0),
             f"{row['binary_mb']:.0f} (1/{row['float32_mb'] / row['binary_mb']:.1f})")
        )  # fmt: skip
    head: tuple[str, ...] = ("gallery", "K", "d", "rows one bit would need", "bits", "probes", "threshold")
    head += ("same decisions", "scanned exactly", "log-mass within, mated", "mean within, mated")
    head += ("log-mass within, strangers", "mean within, strangers", "FAISS scores again: same decisions")
    head += ("float32, MB", "int8, MB", "binary, MB")
    return table(head, lines, "l" + "r" * (len(head) - 1))
