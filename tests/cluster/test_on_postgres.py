"""Several processes with a gallery on a PostgreSQL server share its shards, each at its own version."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np

import holue
from holue.cluster.local_ray import LocalRay
from holue.live.clustered import ClusterAddress

D = 16
RNG = np.random.default_rng(3)


def test_two_openings_share_shards_and_see_their_own_versions(ray_cluster: LocalRay, own_postgres: Any) -> None:
    url = own_postgres.url(f"g{uuid.uuid4().hex[:12]}")
    X = RNG.standard_normal((2000, D)).astype(np.float32)
    where = ClusterAddress(ray_cluster.address, n_shards=2)
    with (
        holue.open(url, create=True, dim=D, method="galue", threshold=0.9, cluster=where) as one,
        holue.open(url, cluster=where) as two,
    ):
        one.enroll(X, [f"p{i}" for i in range(2000)])
        assert two.version == 0
        two.refresh()
        assert one.clustered is not None
        assert two.clustered is not None
        assert {row.pid for row in one.clustered.cluster.status()} == {
            row.pid for row in two.clustered.cluster.status()
        }
        for step in range(12):  # more than a shard keeps
            one.remove([f"p{step}"])
        assert two.identify(X[:12]).subject.tolist() == [f"p{i}" for i in range(12)]
        assert one.identify(X[:13]).subject.tolist() == [*[holue.UNKNOWN] * 12, "p12"]
        assert two.identify(X[:12]).subject.tolist() == [f"p{i}" for i in range(12)]
        two.enroll(X[:1], ["again"])
        assert two.identify(X[:1]).subject.tolist() == ["again"]
        one.refresh()
        assert one.identify(X[:1]).subject.tolist() == ["again"]
        with holue.open(url) as single:
            ours, theirs = one.identify(X[:50]), single.identify(X[:50])
            assert np.array_equal(ours.p_subject, theirs.p_subject)
            assert np.array_equal(ours.candidate_probabilities, theirs.candidate_probabilities)
        own_postgres.crash()
        assert np.array_equal(one.identify(X[:50]).p_subject, ours.p_subject)
        assert one.status().store.age is not None
        one.clustered.cluster.down()
