"""``holue cluster`` starts shards, shows, moves and ends them; ``holue identify --cluster`` asks them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import holue
from holue.cli.app import app
from holue.cluster.local_ray import LocalRay
from holue.cluster.nodes import undrain
from holue.errors import InvalidParameterError

D = 16


def run(*arguments: str) -> dict:
    ran = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


@pytest.fixture
def home(tmp_path: Path) -> str:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, D)).astype(np.float32)
    with holue.open(tmp_path / "gallery", create=True, dim=D, method="galue", threshold=0.6) as made:
        made.enroll(X, [f"p{i}" for i in range(300)])
    np.savez(tmp_path / "probes.npz", embeddings=X[:20])
    return str(tmp_path / "gallery")


def test_a_gallery_goes_up_is_asked_is_drained_from_a_node_and_goes_down(ray_cluster: LocalRay, home: str) -> None:
    there = ["--address", ray_cluster.address]
    with pytest.raises(InvalidParameterError, match="never on a cluster"):
        run("cluster", "status", home, *there)
    up = run("cluster", "up", home, "--shards", "1", *there)
    assert {row["address"] for row in up["replicas"]} == {"127.0.0.3", "127.0.0.4"}
    assert {row["subjects"] for row in up["replicas"]} == {300}
    pids = {row["pid"] for row in up["replicas"]}

    probes = str(Path(home).parent / "probes.npz")
    spread, single = run("identify", home, probes, "--cluster", ray_cluster.address), run("identify", home, probes)
    assert spread == single
    with pytest.raises(InvalidParameterError, match="NODE goes with drain"):
        run("cluster", "drain", home, *there)
    drained = run("cluster", "drain", home, "127.0.0.4", *there)
    try:
        assert [row["address"] for row in drained["replicas"]] == ["127.0.0.3"]
        assert {row["pid"] for row in drained["replicas"]} < pids
        with pytest.raises(InvalidParameterError, match="the last node"):
            run("cluster", "drain", home, "127.0.0.3", *there)
    finally:
        undrain(drained["drained"])
    assert len(run("cluster", "rebalance", home, *there)["replicas"]) == 2
    assert run("cluster", "down", home, *there)["ended"] == 2
    assert run("cluster", "status", home, *there)["replicas"] == []
