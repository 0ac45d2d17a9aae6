"""The store, the living gallery and other stores are measured alike, and the page says what was found."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from holue.bench.page.page import speed_page
from holue.bench.page.targets import verdicts
from holue.bench.peers.comparison import PEERS, absent
from holue.bench.peers.peer import TOP
from holue.bench.sections.program import run
from holue.bench.worlds.sizes import QUICK
from holue.bench.worlds.world import random_directions, random_probes

TINY = replace(QUICK, store_batch=40, store_dim=8, live_subjects=(200,), live_dim=8, live_calls=3)
OPENED_IN_THIS_PROCESS = [name for name in PEERS if name != "pgvector"]


@pytest.mark.parametrize("name", OPENED_IN_THIS_PROCESS)
def test_every_store_finds_the_nearest_and_forgets_who_was_removed(name: str, tmp_path: Any) -> None:
    import numpy as np

    why = absent(name)
    if why is not None:
        pytest.skip(why)
    rng = np.random.default_rng(0)
    X = random_directions(rng, 40, 16)
    probes = random_probes(rng, X, 4)
    peer = PEERS[name](str(tmp_path / "store"), 16)
    peer.enroll(list(range(20)), X[:20])
    peer.enroll(list(range(20, 40)), X[20:])
    order = np.argsort(-(probes @ X.T), axis=1)
    assert peer.ask(probes) == order[:, :TOP].tolist()
    assert peer.ask(probes[:1]) == order[:1, :TOP].tolist()
    gone = order[0, :2].tolist()
    peer.remove(gone)
    assert peer.ask(probes[:1]) == [[n for n in order[0].tolist() if n not in gone][:TOP]]
    assert peer.size() > 0
    peer.close()


def test_the_store_and_the_living_gallery_are_measured_and_judged() -> None:
    result = run(sections=["store", "live"], sizes=TINY, rounds=2)
    json.dumps(result, allow_nan=False)
    assert result["finished"]
    assert result["store"]["batches"]["rows_per_second"] > 0
    (row,) = result["live"]
    assert row["subjects"] == 200
    assert row["calls"] == 6
    judged = [verdict.target for verdict in verdicts(result)]
    assert len(judged) == 5
    page = speed_page(result)
    assert page.startswith("# Speed of the store")
    assert "## Durable enrolments" in page
    assert "## The living gallery" in page


def peer_row(system: str, **columns: float) -> dict[str, Any]:
    names = ("enroll_s", "remove_one_s", "remove_s", "open_s", "one_s", "many_s", "bytes")
    row = {"system": system, "about": "a store", "version": "1", "subjects": 10, "dim": 4, "found": 1.0}
    return row | dict.fromkeys(names, 1.0) | columns


def test_a_row_in_which_another_store_is_ahead_is_missed() -> None:
    rows = [peer_row("holue", one_s=0.5, many_s=2.0), peer_row("other"), peer_row("third", many_s=1.5)]
    found = {verdict.target.split(":")[0]: verdict for verdict in verdicts({"peers": {"rows": rows}})}
    assert found["one probe"].met
    assert not found["64 probes"].met
    assert found["64 probes"].measured == "2.00 × the best other"
    assert found["size on disk"].met


@pytest.mark.parametrize(("ratio", "per_second", "met"), [(1.2, 99.0, True), (1.2, 40.0, False), (1.6, 99.0, False)])
def test_answers_during_changes_are_judged_at_the_rate_that_was_asked_for(
    ratio: float, per_second: float, met: bool
) -> None:
    row = {"subjects": 10, "dim": 4, "open_s": 0.1, "p99_ratio": ratio, "per_second": per_second}
    (verdict,) = [each for each in verdicts({"live": [row]}) if "come and go" in each.target]
    assert verdict.met is met
