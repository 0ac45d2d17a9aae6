"""The measuring program counts, compares and reports rightly; how fast anything is, is no business of a test."""

import json
import mmap
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from holue.bench import measuring, systems
from holue.bench.measuring import Timing, own_bytes, peak_bytes, time_in_turn
from holue.bench.page.chart import speed_chart
from holue.bench.page.page import speed_page
from holue.bench.page.table import as_text
from holue.bench.page.targets import verdicts
from holue.bench.sections import exact
from holue.bench.sections.program import run
from holue.bench.systems import SYSTEMS, missing
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import mapped_directions, random_directions, random_probes
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
    calibration_probes=0,
    pooled_samples=0,
    pooled_dim=8,
    starts=0,
    pause=0.0,
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
    assert order == ["a", "b"], "one call each took all their time, and is the one that counts"
    assert [len(t.seconds) for t in timings.values()] == [1, 1]


def test_what_the_ratios_rest_on_is_called_again_however_slow() -> None:
    timings = time_in_turn({"a": lambda: None}, rounds=5, seconds_each=-1.0, pause=0.0, again=["a"])
    assert len(timings["a"].seconds) == 5


def test_a_short_call_is_made_once_more_before_it_counts() -> None:
    order: list[str] = []
    calls = {"short": lambda: order.append("short"), "long": lambda: order.append("long")}
    timings = time_in_turn(calls, rounds=2, seconds_each=9.0, pause=0.0, first={"short": 0.1, "long": 0.3})
    assert order == 2 * ["short", "short", "long"]
    assert [len(t.seconds) for t in timings.values()] == [2, 2]


def test_a_call_has_three_rounds_though_they_take_all_its_seconds() -> None:
    # Far apart: a busy machine may keep even an empty call waiting for some milliseconds.
    calls = {"slow": lambda: time.sleep(0.1), "fast": lambda: None}
    timings = time_in_turn(calls, rounds=5, seconds_each=0.25, pause=0.0, first={"slow": 0.5, "fast": 0.5})
    assert [len(t.seconds) for t in timings.values()] == [3, 5]


def test_ratios_are_taken_round_by_round() -> None:
    # The second round was disturbed: both took ten times as long, and the ratio does not notice.
    product, evidence = Timing(np.array([1.0, 10.0, 1.0])), Timing(np.array([1.1, 11.0, 1.1, 99.0]))
    assert evidence.ratio_to(product) == pytest.approx(1.1)
    assert product.summary() == {"median_ms": 1000.0, "q1_ms": 1000.0, "q3_ms": 5500.0, "calls": 3}


def test_the_numbers_are_the_file(tmp_path: Path) -> None:
    steps: list[str] = []
    result = run(
        sizes=replace(TINY, calibration_probes=80, pooled_samples=50),
        rounds=2,
        out=tmp_path / "bench.json",
        progress=lambda done, total, note="": steps.append(note),
    )
    assert json.loads((tmp_path / "bench.json").read_text("utf-8")) == result
    measured = [name for name in SYSTEMS if name not in result["skipped"]]
    assert [row["system"] for row in result["comparison"]] == measured * 2
    assert {row["system"] for row in result["growth"]} == {"sgemm", "holue"}
    assert result["mapped"]["rows"][0]["subjects"] == 500
    assert "K = 300, d = 16, 5 probes, 1 threads" in steps
    assert [row["cost"] for row in result["other_costs"]] == [
        "calibrate",
        "bootstrap of F1",
        "bootstrap of a PRR",
        "pool",
    ]
    assert result["finished"]
    text = as_text(result)
    assert "memory-mapped: K = 500" in text
    assert "identify, one probe, K = 300" in text
    assert "pool, 50 samples" in text


def test_an_interrupted_run_leaves_what_it_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(done: int, total: int, note: str = "") -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(sizes=TINY, rounds=1, out=tmp_path / "bench.json", progress=interrupt)
    left = json.loads((tmp_path / "bench.json").read_text("utf-8"))
    assert {row["probes"] for row in left["comparison"]} == {1}
    assert "interrupted" in as_text(left)
    assert "**Interrupted, so that some sizes are missing: exact, other-costs.**" in speed_page(left)
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def measured(system: str, probes: int, threads: int, ms: float, **ratios: float) -> dict[str, object]:
    place = {"subjects": 100_000, "dim": 512, "probes": probes, "threads": threads}
    return place | {"system": system, "median_ms": ms, "peak_mb": 3.0, **ratios}


RESULT = {
    "machine": {
        "processors": 2,
        "architecture": "x",
        "vectors": "y",
        "blas": "z",
        "python": "3",
        "load": 3.0,
        "packages": {"numpy": "2"},
    },
    "rounds": 9,
    "seconds": 90.0,
    "finished": True,
    "skipped": {"usearch": "it is not installed"},
    "comparison": [
        measured("sgemm", 1, 1, 10.0, ratio_to_sgemm=1.0),
        measured("holue", 1, 1, 20.48, ratio_to_sgemm=0.9, ratio_to_faiss=1.05),
        measured("faiss", 1, 1, 19.0, ratio_to_sgemm=0.8),
        measured("holue", 1000, 1, 1000.0, ratio_to_sgemm=1.1, ratio_to_faiss=0.25),
    ],
    "growth": [measured("holue", 1, 2, 10.0)],
    "mapped": {"rows": [measured("holue", 64, 2, 10.0)]},
    "latency": {"subjects": 100_000, "dim": 512, "probes": 1, "p50_ms": 12.0, "p99_ms": 14.0, "calls": 9},
    "other_costs": [
        {"cost": "pool", "samples": 10**6, "dim": 512, "seconds": 7.0, "processor_seconds": 8.0, "peak_mb": 500.0}
    ],
    "start": {
        state: {"import holue": 0.1, "first fit": 0.5, "first identify": 0.1} for state in ("compiling", "cached")
    },
}


def test_targets_are_judged_by_their_worst_case() -> None:
    judged = {(verdict.target, verdict.measured, verdict.met) for verdict in verdicts(RESULT)}
    assert judged == {
        ("at most 1.15 × the bare product's time, from 64 probes on, d = 512", "1.10", True),
        ("at most 1.3 × the bare product's time, below 64 probes, d = 512", "0.90", True),
        ("never slower than FAISS, d = 512", "1.05", False),
        ("at most half of FAISS's time, from 64 probes on, d = 512", "0.25", True),
        ("under 1 GB of its own for a memory-mapped gallery", "3.0 MB", True),
        ("pool in under 5 s", "7.0 s", False),
        ("import of holue in under 0.5 s", "0.10 s", True),
        ("first call without waiting more than 2 s for compilation", "0.60 s", True),
    }


def test_the_page_says_what_was_measured_and_reckons_a_billion() -> None:
    page = speed_page(RESULT, "## Remarks\n\nWhy.")
    assert "it was **busy**" in page
    assert "| 1 | 10.0 | 20.5 | 19.0 | 0.90 | 0.95 |" in page
    assert page.index("**missed**") < page.index("| met |")
    # 205 MB in 20.48 ms is 10 GB/s, 20 GB of it 2 s; 1e8 scores in a second are 10 s for 1e9 subjects.
    billion = page[page.index("## A billion subjects") :]
    for value in ("2.05 TB", "10.0 GB/s", "10.00 ns", "| 103 |", "| 2.0 s |", "| 10.0 s |", "| 21 |"):
        assert value in billion
    assert page.endswith("## Remarks\n\nWhy.\n")


def test_the_chart_is_two_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for result in (RESULT, RESULT | {"comparison": [], "growth": [], "mapped": None}):
        speed_chart(result).save(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["speed.png", "speed.svg"]


def test_a_start_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([{"import holue": 9.0}, {"import holue": 0.2}, {"import holue": 0.1}, {"import holue": 0.3}])
    monkeypatch.setattr(measuring, "_one_start", lambda environment: next(taken))
    assert measuring.start_seconds(3) == {"compiling": {"import holue": 9.0}, "cached": {"import holue": 0.2}}


def test_a_missing_package_is_named_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda package: None)
    monkeypatch.setattr(exact, "SYSTEMS", {name: SYSTEMS[name] for name in ("sgemm", "holue", "faiss")})
    result = run(sizes=TINY, rounds=1)
    assert result["skipped"] == {"faiss": "faiss is not installed; run: pip install 'holue[bench]'"}
    assert "not measured: faiss" in as_text(result)


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    result = run(sizes=TINY, rounds=1)
    assert "has 0.0 GB free" in result["mapped"]["skipped"]
    assert "memory-mapped gallery not measured" in as_text(result)


def test_mapped_directions_are_unit_and_read_only(tmp_path: Path) -> None:
    gallery = mapped_directions(np.random.default_rng(2), tmp_path / "g.f32", 1000, 8)
    np.testing.assert_allclose(np.linalg.norm(gallery, axis=1), 1.0, rtol=1e-6)
    assert not gallery.flags.writeable


@pytest.mark.skipif(own_bytes() is None, reason="the system does not tell a process its own memory")
def test_the_peak_sees_what_a_call_allocates_and_frees() -> None:
    def hold_and_free() -> None:
        # An array could reuse memory that was freed before.
        with mmap.mmap(-1, 40_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
            for _ in range(40):
                fresh.write(b"1" * 1_000_000)
            time.sleep(0.5)  # on a busy machine the watching thread gets its turn late

    seen = peak_bytes(hold_and_free)
    assert seen is not None
    assert 20e6 < seen < 200e6
