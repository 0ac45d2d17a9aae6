"""Choice: which way ``search="auto"`` reads a gallery, and why.

Measured (docs/speed.md): an exact float32 scan of 50 000 subjects of 512 features takes about 4 ms for one probe, and is exact
to the last bit. Above that int8 codes are faster for one probe (2 to 3 times) and about as fast or faster for many, decide as
the exact scan does with certainty, and take a quarter of float32. In larger galleries still, or where int8 codes are too large
for the memory, one or two bits per coordinate are faster again, and decide as the exact scan with probability 1 - 1e-6; not
where rows of the gallery say that even two bits would leave many rows to score. Lists are never chosen: whether they gain
anything at a threshold is known only after they are built.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from holue.evidence.binary.bits_needed import FEW, Shares
from holue.gallery.gallery import Gallery
from holue.recognition.search.search import SearchKind

EXACT_UP_TO = 50_000 * 512
"""Coordinates of all subjects together up to which every one is read exactly."""
BITS_FROM, BITS_FROM_FEATURES = 200_000 * 512, 64
"""Coordinates of all subjects together, and of one, from which bits are faster than bytes."""
MEMORY_SHARE = 0.25
"""The share of the machine's memory that int8 codes may take."""


@dataclass(frozen=True)
class Choice:
    """A way to read a gallery, and a sentence that says why."""

    kind: SearchKind
    reason: str


def chosen(asked: SearchKind, gallery: Gallery, parts: int = 1, shares: Shares | None = None) -> Choice:
    """What was asked for, or the choice of "auto".

    A gallery in ``parts``, read side by side, is chosen for by the size of one; the parts are on machines like this one.
    ``shares`` are of its largest segment, where they were measured.
    """
    if asked != "auto":
        return Choice(asked, "as set")
    n_subjects = -(-len(gallery) // parts)
    size = n_subjects * gallery.dim
    told = f"{n_subjects} subjects of {gallery.dim} features"
    if parts > 1:
        told += f" in each of {parts} shards"
    if size <= EXACT_UP_TO:
        return Choice("exact", f"{told}: reading all exactly takes a few milliseconds")
    memory = _memory()
    fits = size <= MEMORY_SHARE * memory
    if fits and (size <= BITS_FROM or gallery.dim < BITS_FROM_FEATURES):
        return Choice("int8", f"{told}: one byte per feature is faster, and decides as the exact scan does")
    if fits and shares is not None and shares.two_bits > FEW:
        return Choice(
            "int8",
            f"{told}: one byte per feature; with two bits a stranger's decision would need {shares.two_bits:.1%} of the rows, "
            "as measured on rows of this gallery",
        )
    if fits:
        return Choice(
            "binary",
            f"{told}: one or two bits per feature are faster, and decide as the exact scan with probability 1 - 1e-6",
        )
    return Choice(
        "binary",
        f"{told}: one byte per feature would take {size / memory:.0%} of the memory; one or two bits decide as the exact scan "
        "with probability 1 - 1e-6",
    )


def _memory() -> float:
    """Bytes of memory that this machine has; unlimited where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
