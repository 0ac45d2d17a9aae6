"""The benchmark of approximate evidence: worlds of look-alikes, and rows that say how fast and how far off."""

import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from holue.bench import measuring
from holue.bench.page.chart import growth_chart
from holue.bench.sections.approximate import Case, accuracy, approximate_steps, speed
from holue.bench.worlds.clusters import Families, Mixture, enrol, mated_probes
from holue.bench.worlds.sizes import QUICK, Sizes
from holue.bench.worlds.world import random_directions


def test_families_look_alike_and_mates_more_so() -> None:
    rng = np.random.default_rng(0)
    draw = Families.found(rng, 1000, 64)
    gallery = enrol(draw, rng, 1000)
    np.testing.assert_allclose(np.linalg.norm(gallery, axis=1), 1.0, atol=1e-5)
    nearest = (draw(rng, 50) @ gallery.T).max(axis=1)
    alone = (random_directions(rng, 50, 64) @ gallery.T).max(axis=1)
    assert np.median(nearest) > np.median(alone) + 0.1
    mated = mated_probes(gallery, rng, 50, 0.8, 0.0)
    assert (mated @ gallery.T).max(axis=1).min() > 0.79


def test_a_mapped_gallery_is_the_same_as_one_in_memory(tmp_path: Path) -> None:
    draw = Families.found(np.random.default_rng(0), 500, 8)
    held, mapped = (enrol(draw, np.random.default_rng(1), 500, path) for path in (None, tmp_path / "gallery.f32"))
    np.testing.assert_array_equal(held, mapped)


def test_a_mixture_has_the_spread_of_what_it_was_fitted_to() -> None:
    rng = np.random.default_rng(0)
    templates = random_directions(rng, 600, 12) * np.linspace(2, 0.2, 12, dtype=np.float32)
    templates /= np.linalg.norm(templates, axis=1, keepdims=True)
    drawn = Mixture.fit(templates, 12, components=2)(rng, 5000)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, atol=1e-5)
    # The main coordinate carries most in both; a normal fit on the sphere is rough.
    assert drawn.var(axis=0).argmax() == 0
    assert Mixture.fit(templates, 5, components=2)(rng, 3).shape == (3, 5)


@pytest.fixture(scope="module")
def case() -> Case:
    rng = np.random.default_rng(0)
    return Case.make(Families.found(rng, 10_000, 16), rng, 10_000, n_probes=100)


@pytest.fixture(scope="module")
def rows(case: Case) -> list[dict[str, Any]]:
    return speed(case, batches=(1, 3), threads=(1,), rounds=1, pause=0.0)


def test_speed_is_given_beside_the_exact_scan(rows: list[dict[str, Any]]) -> None:
    exact = [row for row in rows if row["system"] == "exact"]
    assert [row["times_faster"] for row in exact] == [1.0, 1.0]
    assert {"approximate"} <= {row["system"] for row in rows}
    assert all(row["subjects"] == 10_000 and row["median_ms"] > 0 for row in rows)


def test_accuracy_is_told_apart_for_mated_probes_and_strangers(case: Case) -> None:
    told = accuracy(case)
    assert told["decisions_identical"] > 0.9
    for who in ("mated", "strangers"):
        for sharpness in ("kappa", "kappa_over_t"):
            assert 0 <= told[who][sharpness]["covered"] <= 1
            assert told[who][sharpness]["log_mass_off"]["median"] <= told[who][sharpness]["log_mass_off"]["largest"]


def test_growth_is_drawn(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    larger = [row | {"subjects": 40_000, "threads": 2} for row in rows]
    for some in (rows + larger, [row for row in rows if row["probes"] == 1]):
        growth_chart(some).save(tmp_path)
        assert (tmp_path / "approximate.png").stat().st_size > 5000


@pytest.fixture
def on_disk() -> Sizes:
    """A gallery that is mapped from a file though it is small."""
    one = replace(QUICK, approximate_subjects=(), approximate_mapped=10_000, approximate_dim=8, approximate_probes=40)
    return replace(one, approximate_batches=(1, 2, 3), threads=(1,), pause=0.0, seconds_each=0.01)


def test_the_gallery_on_disk_is_deleted_after_it_was_measured(
    on_disk: Sizes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    result: dict[str, Any] = {}
    held = []
    for note, measure in approximate_steps(result, on_disk, 1, 0):
        measure()
        held.append((note, [path.stat().st_size for path in tmp_path.rglob("*.f32")]))
    assert held == [
        ("approximate: K = 10000 on disk, enrolled and indexed", [10_000 * 8 * 4]),
        ("approximate: K = 10000, speed", [10_000 * 8 * 4]),
        ("approximate: K = 10000, accuracy", []),
    ]
    assert {(row["probes"], row["on_disk"]) for row in result["approximate"]["speed"]} == {(1, True), (3, True)}
    assert not list(tmp_path.iterdir())


def test_a_gallery_that_has_no_room_on_disk_is_left_out_and_told(
    on_disk: Sizes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    result: dict[str, Any] = {}
    assert list(approximate_steps(result, on_disk, 1, 0)) == []
    assert "has 0.0 GB free" in result["approximate"]["skipped"]
