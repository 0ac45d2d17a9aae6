"""The service on a cluster shows shards, replicas, lag and failures: a page, a document and metrics."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

import holue
from holue.cluster.local_ray import LocalRay
from holue.service.app import create_app
from holue.service.service import Service
from holue.service.settings import ServiceSettings

D = 16


def metric(client: TestClient, name: str) -> float:
    lines = [line for line in client.get("/metrics").text.splitlines() if line.startswith(name)]
    return float(lines[0].rpartition(" ")[2])


def test_the_shards_are_on_a_page_in_a_document_and_in_the_metrics(ray_cluster: LocalRay, tmp_path: Path) -> None:
    X = np.random.default_rng(6).standard_normal((300, D)).astype(np.float32)
    with holue.open(tmp_path / "office", create=True, dim=D, method="galue", threshold=0.6) as made:
        made.enroll(X, [f"p{i}" for i in range(300)])
    with holue.open(tmp_path / "alone", create=True, dim=D, method="galue", threshold=0.6) as made:
        made.enroll(X[:2], ["a", "b"])
    settings = ServiceSettings(galleries=str(tmp_path), port=0, keys=False, cluster=ray_cluster.address)
    service = Service(settings).open()
    opened = service.galleries.get("office").live.clustered
    assert opened is not None
    try:
        with TestClient(create_app(service=service), base_url="http://127.0.0.1") as client:
            found = client.get("/v1/galleries/office/cluster").json()
            assert (found["shards"], len(found["replicas"]), found["failures"]) == (2, 4, [])
            assert {row["behind"] for row in found["replicas"]} == {0}
            assert sum(row["subjects"] for row in found["replicas"]) == 600
            assert metric(client, 'holue_replicas{gallery="office",state="answering"}') == 4
            assert metric(client, 'holue_shards_missing{gallery="office"}') == 0
            page = client.get("/galleries/office/cluster").text
            assert "all answer" in page
            assert 'href="/galleries/office/cluster"' in page

            victims = [row["pid"] for row in found["replicas"] if row["shard"] == 1]
            for pid in victims:
                os.kill(pid, signal.SIGSTOP)
            try:
                assert "No replica answers for shards 1" in client.get("/galleries/office/cluster").text
                assert metric(client, 'holue_shards_missing{gallery="office"}') == 1
                assert len(client.get("/v1/galleries/office/cluster").json()["failures"]) >= 2
            finally:
                for pid in victims:
                    os.kill(pid, signal.SIGCONT)
            end = time.monotonic() + 30
            while metric(client, 'holue_shards_missing{gallery="office"}'):
                assert time.monotonic() < end
                time.sleep(0.1)
    finally:
        for each in service.galleries:
            assert each.live.clustered is not None
            each.live.clustered.cluster.down()
        service.close()


def test_without_a_cluster_there_is_no_such_page(tmp_path: Path) -> None:
    with holue.open(tmp_path / "office", create=True, dim=D, method="galue", threshold=0.6) as made:
        made.enroll(np.eye(D)[:2], ["a", "b"])
    service = Service(ServiceSettings(galleries=str(tmp_path), port=0, keys=False)).open()
    with TestClient(create_app(service=service), base_url="http://127.0.0.1") as client:
        assert client.get("/v1/galleries/office/cluster").status_code == 404
        assert client.get("/galleries/office/cluster").status_code == 404
        assert 'cluster"' not in client.get("/galleries/office/identify").text
