"""Sizes: which galleries, batches and threads are measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The comparison at one gallery size over dimensions, batches and threads; growth; what else a user waits for."""

    n_subjects: int = 100_000
    dims: tuple[int, ...] = (512, 128)
    batches: tuple[int, ...] = (1, 16, 64, 256, 1024)
    threads: tuple[int, ...] = (1, 2)
    growth_subjects: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    growth_dims: tuple[int, ...] = (64, 128, 256, 512)
    growth_batches: tuple[int, ...] = (1, 64)
    growth_dim: int = 128
    mapped_subjects: int = 10_000_000
    latency_calls: int = 200
    seconds_each: float = 1.0
    calibration_probes: int = 20_000
    pooled_samples: int = 1_000_000
    pooled_dim: int = 512
    starts: int = 3


FULL = Sizes()
"""Every size: some six to eight minutes on two idle processors, 5 GB of memory and 5 GB of disk."""
QUICK = Sizes(
    n_subjects=20_000,
    dims=(128,),
    batches=(1, 64),
    growth_subjects=(10_000, 40_000),
    growth_dims=(64, 128),
    mapped_subjects=0,
    latency_calls=30,
    seconds_each=0.3,
    calibration_probes=2_000,
    pooled_samples=100_000,
    pooled_dim=128,
    starts=1,
)
"""A look in under a minute."""
