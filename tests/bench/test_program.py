"""The measuring program counts, compares and reports rightly; how fast anything is, is no business of a test."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from holue.bench import program, systems
from holue.bench.memory import own_bytes, peak_bytes
from holue.bench.program import run
from holue.bench.rounds import Timing, time_in_turn
from holue.bench.sizes import Sizes
from holue.bench.systems import SYSTEMS, missing
from holue.bench.table import as_text
from holue.bench.world import mapped_directions, random_directions, random_probes
from holue.evidence.evidence import Evidence

TINY = Sizes(
    n_subjects=300,
    dims=(16,),
    batches=(1, 5),
    threads=(1,),
    growth_subjects=(100,),
    growth_dims=(8,),
    growth_batches=(1,),
    growth_dim=8,
    mapped_subjects=500,
    latency_calls=3,
    seconds_each=0.01,
)


def nearest(name: str, answer: object) -> list[int]:
    if isinstance(answer, Evidence):
        return answer.top_index[:, 0].tolist()
    if name == "sgemm":
        return np.argmax(answer, axis=1).tolist()  # type: ignore[call-overload, no-any-return]
    if name == "faiss":
        return answer[1][:, 0].tolist()  # type: ignore[index, no-any-return]
    if name == "usearch":
        return np.asarray(answer.keys).reshape(-1).tolist()  # type: ignore[attr-defined, no-any-return]
    if name == "numpy float64":
        return answer[0][1].tolist()  # type: ignore[index, no-any-return]
    return []


@pytest.mark.parametrize("name", list(SYSTEMS))
@pytest.mark.parametrize("threads", [1, 2])
def test_every_system_finds_the_same_nearest_subject(name: str, threads: int) -> None:
    if missing(name):
        pytest.skip(str(missing(name)))
    rng = np.random.default_rng(0)
    gallery = random_directions(rng, 400, 24)
    probes = random_probes(rng, gallery, 6)
    answer = SYSTEMS[name](gallery, len(probes), threads)(probes)
    expected = np.argmax(probes @ gallery.T, axis=1).tolist()
    if name == "numpy float32":
        top, _ = answer  # type: ignore[misc]
        assert all(row in five for row, five in zip(expected, top.tolist()))
    else:
        assert nearest(name, answer) == expected


def test_half_of_the_probes_are_mated() -> None:
    rng = np.random.default_rng(1)
    gallery = random_directions(rng, 200, 256)
    best = (random_probes(rng, gallery, 40) @ gallery.T).max(axis=1)
    assert (best[1::2] > 0.8).all()
    assert (best[::2] < 0.5).all()


def test_systems_take_turns_and_the_slow_stop_early() -> None:
    order: list[str] = []
    timings = time_in_turn(
        {"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=5, seconds_each=-1.0, pause=0.0
    )
    assert order == ["a", "b"] * 4, "one call each to warm up, then three of the five rounds"
    assert [len(t.seconds) for t in timings.values()] == [3, 3]


def test_ratios_are_taken_round_by_round() -> None:
    # The second round was disturbed: both took ten times as long, and the ratio does not notice.
    product, evidence = Timing(np.array([1.0, 10.0, 1.0])), Timing(np.array([1.1, 11.0, 1.1, 99.0]))
    assert evidence.ratio_to(product) == pytest.approx(1.1)
    assert product.summary() == {"median_ms": 1000.0, "q1_ms": 1000.0, "q3_ms": 5500.0, "calls": 3}


def test_the_numbers_are_the_file(tmp_path: Path) -> None:
    steps: list[str] = []
    result = run(sizes=TINY, rounds=2, out=tmp_path / "bench.json", report=steps.append)
    assert json.loads((tmp_path / "bench.json").read_text("utf-8")) == result
    measured = [name for name in SYSTEMS if name not in result["skipped"]]
    assert [row["system"] for row in result["comparison"]] == measured * 2
    assert {row["system"] for row in result["growth"]} == {"sgemm", "holue"}
    assert result["mapped"]["rows"][0]["subjects"] == 500
    assert "K = 300, d = 16, 5 probes, 1 threads" in steps
    text = as_text(result)
    assert "memory-mapped: K = 500" in text
    assert "identify, one probe, K = 300" in text


def test_a_missing_package_is_named_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda package: None)
    monkeypatch.setattr(program, "SYSTEMS", {name: SYSTEMS[name] for name in ("sgemm", "holue", "faiss")})
    result = run(sizes=TINY, rounds=1)
    assert result["skipped"] == {"faiss": "faiss is not installed; run: pip install 'holue[bench]'"}
    assert "not measured: faiss" in as_text(result)


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    result = run(sizes=TINY, rounds=1)
    assert "0.0 GB are free" in result["mapped"]["skipped"]
    assert "memory-mapped gallery not measured" in as_text(result)


def test_mapped_directions_are_unit_and_read_only(tmp_path: Path) -> None:
    gallery = mapped_directions(np.random.default_rng(2), tmp_path / "g.f32", 1000, 8)
    np.testing.assert_allclose(np.linalg.norm(gallery, axis=1), 1.0, rtol=1e-6)
    assert not gallery.flags.writeable


@pytest.mark.skipif(own_bytes() is None, reason="the system does not tell a process its own memory")
def test_the_peak_sees_what_a_call_allocates_and_frees() -> None:
    seen = peak_bytes(lambda: [np.ones(5_000_000).sum() for _ in range(20)])
    assert seen is not None
    assert 20e6 < seen < 200e6
