"""The torch package, or a clear word about the extra that brings it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from holue.errors import MissingDependencyError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError("torch", "train") from error

__all__ = ["reproducible", "torch"]


@contextmanager
def reproducible(seed: int, threads: int = 1) -> Iterator[None]:
    """Torch's own random numbers and thread count, set inside and restored afterwards.

    >>> with reproducible(seed=3):
    ...     first = torch.rand(2)
    >>> with reproducible(seed=3):
    ...     bool((torch.rand(2) == first).all())
    True
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(before)
