"""Search: the one way recognition reads a version of a gallery, wherever its rows are and however they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from holue.evidence.evidence import Evidence
from holue.evidence.link import Link, cosine_link
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.segment import Numbers
from holue.gallery.subjects import Subjects

SearchKind = Literal["auto", "exact", "float16", "int8", "binary", "approximate"]
SEARCHES: tuple[SearchKind, ...] = ("exact", "float16", "int8", "binary", "approximate")
"""The ways there are; "auto" is one of them for each version of a gallery (see ``choice.py``)."""


class Search(Protocol):
    """One version of a gallery. Evidence names subjects by their numbers, and this version names the numbers."""

    @property
    def version(self) -> int:
        """Which version."""
        ...

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """The precision of the rows."""
        ...

    def __len__(self) -> int:
        """How many subjects are enrolled."""
        ...

    @property
    def missing(self) -> int:
        """Subjects that its scans could not see, none of whom ``len`` counts; 0 where the rows are in this process."""
        ...

    def missing_cosines(self, numbers: Numbers) -> Float64Array:
        """The highest cosine of each of some seen subjects with any that is missing, rounded up; 1 where it is not known."""
        ...

    def names(self, numbers: Numbers) -> Subjects:
        """The ids of some numbers; a negative one is nobody's."""
        ...

    def index_of(self, ids: Subjects) -> Numbers:
        """The number of each id, −1 where it is not enrolled."""
        ...

    def rows(self, numbers: Numbers) -> FloatArray:
        """The exact directions of some numbers, copied."""
        ...

    def blocks(self, size: int) -> Iterator[tuple[Numbers, FloatArray]]:
        """The numbers and exact directions of all subjects, at most ``size`` at a time."""
        ...

    def scan(
        self,
        directions: FloatArray,
        sharpness: npt.ArrayLike,
        *,
        top_k: int,
        link: Link = cosine_link,
        decisive: float | None = None,
        threads: int | None = None,
    ) -> Evidence:
        """Evidence of the gallery about unit ``directions``; any ``link`` but the cosine itself is read exactly.

        ``decisive`` is the threshold of the decision, where one is made: a search may look less closely at who is below it.
        """
        ...
