"""A Ray of a head and two nodes on this machine, for all tests of a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holue.cluster.local_ray import LocalRay


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRay]:
    # Nodes inherit it: what shards keep on disk goes with the test.
    kept = os.environ.get("HOLUE_CACHE")
    os.environ["HOLUE_CACHE"] = str(tmp_path_factory.mktemp("nodes"))
    try:
        with LocalRay() as local:
            yield local
    finally:
        if kept is None:
            os.environ.pop("HOLUE_CACHE")
        else:
            os.environ["HOLUE_CACHE"] = kept


@pytest.fixture
def node_disk(ray_cluster: LocalRay) -> Path:
    """Where all nodes keep their rows: they share this machine's disk."""
    return Path(os.environ["HOLUE_CACHE"]) / "shards"
