"""Sizes: which galleries, batches and threads are measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holue.bench.measuring import PAUSE


@dataclass(frozen=True)
class Sizes:
    """The comparison at one gallery size over dimensions, batches and threads; growth; what else a user waits for; compressed
    galleries by subjects and dimensions; binary ones with so many probes; approximate evidence by subjects, in memory and mapped
    from disk; changes of one subject each; whole photographs; durable enrolments; living galleries; other stores; shards."""

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
    compressed_shapes: tuple[tuple[int, int], ...] = ((100_000, 512), (100_000, 128), (1_000_000, 128))
    compressed_batches: tuple[int, ...] = (1, 16, 64, 256, 1024)
    binary_shapes: tuple[tuple[int, int], ...] = ((100_000, 512), (400_000, 128))
    binary_batches: tuple[int, ...] = (1, 16, 64, 256)
    binary_probes: int = 1000
    approximate_subjects: tuple[int, ...] = (100_000, 1_000_000)
    approximate_mapped: int = 10_000_000
    approximate_dim: int = 128
    approximate_batches: tuple[int, ...] = (1, 16, 256)
    approximate_probes: int = 4000
    changed_subjects: int = 1_000_000
    changed_dim: int = 512
    changes: int = 250
    photographs: int = 923
    store_batch: int = 10_000
    store_dim: int = 512
    live_subjects: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    live_dim: int = 512
    live_calls: int = 60
    peer_subjects: tuple[int, ...] = (20_000, 100_000)
    peer_dim: int = 512
    cluster_shapes: tuple[tuple[int, int], ...] = ((100_000, 512), (1_000_000, 128))
    cluster_growth_shape: tuple[int, int] = (200_000, 128)
    cluster_shards: tuple[int, ...] = (1, 2, 4, 8)
    cluster_calls: int = 100
    cluster_batch_probes: int = 4096
    pause: float = PAUSE

    def in_memory(self) -> Sizes:
        """The same without the galleries on disk."""
        return replace(self, mapped_subjects=0, approximate_mapped=0)

    def large(self) -> Sizes:
        """The same with binary galleries of a million, and as many probes as their promise is judged by."""
        return replace(self, binary_shapes=((1_000_000, 512), (1_000_000, 128)), binary_probes=20_000)


FULL = Sizes()
"""Every size. On two idle processors the usual sections take a quarter of an hour, 5 GB of memory and 5 GB of disk; compressed
galleries seven minutes; approximate evidence eleven minutes and 6 GB of memory, nearly all of it for ten million subjects;
changes of a gallery of a million some minutes and 6 GB; photographs a minute, where the data is there; living galleries some
minutes, 6 GB of memory and 9 GB of disk."""
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
    compressed_shapes=((20_000, 128),),
    compressed_batches=(1, 64),
    binary_shapes=((20_000, 128),),
    binary_batches=(1, 64),
    binary_probes=400,
    approximate_subjects=(10_000, 40_000),
    approximate_mapped=0,
    approximate_batches=(1, 64),
    approximate_probes=400,
    changed_subjects=40_000,
    changed_dim=128,
    changes=20,
    photographs=50,
    store_batch=2_000,
    store_dim=128,
    live_subjects=(10_000,),
    live_dim=128,
    live_calls=20,
    peer_subjects=(2_000,),
    peer_dim=128,
    cluster_shapes=((20_000, 128),),
    cluster_growth_shape=(20_000, 64),
    cluster_shards=(1, 2),
    cluster_calls=20,
    cluster_batch_probes=2048,
)
"""A look in a minute."""
