"""Every kind of search and every method, through the shards and on one machine: the same bits, or within the same bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import holue
from holue.cluster.cluster_search import ClusterSearch
from holue.cluster.local_ray import LocalRay
from holue.live.clustered import ClusterAddress
from holue.live.live_gallery import LiveGallery
from holue.live.opening import shards_of
from holue.recognition.answer.identifications import Identifications
from holue.recognition.risk.candidate_sets import candidate_sets
from holue.recognition.search.choice import chosen
from holue.recognition.search.gallery_search import GallerySearch

K, SMALL, D = 22_000, 1500, 24
RNG = np.random.default_rng(9)
CENTRES = RNG.standard_normal((600, D))
X = (CENTRES[np.arange(K) % 600] + 0.7 * RNG.standard_normal((K, D))).astype(np.float32)
NAMES = [f"p{i}" for i in range(K)]
PROBES = np.concatenate([X[:60] + 0.15 * RNG.standard_normal((60, D)), RNG.standard_normal((60, D))])
KAPPA = RNG.uniform(50, 400, len(PROBES))

Pair = tuple[LiveGallery, LiveGallery]
Opening = Callable[..., Pair]


@pytest.fixture(scope="module")
def homes(ray_cluster: LocalRay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, str]]:
    """A gallery that is large enough for lists, and a smaller one with two samples of each subject."""
    made = {n: str(tmp_path_factory.mktemp("homes") / str(n)) for n in (K, SMALL)}
    for n, home in made.items():
        with holue.open(home, create=True, dim=D, method="galue", threshold=0.9) as gallery:
            gallery.enroll(X[:n], NAMES[:n])
            if n == SMALL:
                again = X[:n] + 0.2 * np.random.default_rng(1).standard_normal((n, D))
                gallery.add_samples(again, NAMES[:n])
    yield made
    for home in made.values():
        with shards_of(home, ClusterAddress(ray_cluster.address)) as shards:
            shards.down()


@pytest.fixture
def opened(ray_cluster: LocalRay, homes: dict[int, str]) -> Iterator[Opening]:
    """The same gallery, with some settings, on two shards and in this process."""
    open_ones: list[LiveGallery] = []

    def both(n: int = K, **settings: Any) -> Pair:
        where = ClusterAddress(ray_cluster.address, n_shards=2, replicas=1)
        spread = holue.open(homes[n], cluster=where, **settings)
        open_ones.extend([spread, holue.open(homes[n], read_only=True, **settings)])
        return open_ones[0], open_ones[1]

    yield both
    for each in open_ones:
        each.close()


def assert_same(left: Identifications, right: Identifications) -> None:
    for name in left.__dataclass_fields__:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


@pytest.mark.parametrize("search", ["float16", "int8", "binary", "approximate"])
def test_compressed_and_approximate_searches_decide_alike(opened: Opening, search: str) -> None:
    spread, single = opened(search=search)
    ours, theirs = spread.identify(PROBES), single.identify(PROBES)
    assert set(ours.decision) == {"accepted", "rejected"}
    assert np.array_equal(ours.decision, theirs.decision)
    assert np.array_equal(ours.subject, theirs.subject)
    # Where somebody is accepted the best score is that of the exact rows; its bits depend on how a search reads them.
    np.testing.assert_allclose(ours.score[ours.accepted], theirs.score[theirs.accepted], rtol=0, atol=1e-6)
    search_of = spread.current.moment.search
    assert isinstance(search_of, ClusterSearch)
    report, local = spread.status().search, single.status().search
    assert report is not None
    assert local is not None
    assert (report.asked, report.kind) == (search, search)
    if search == "approximate":
        assert report.lists is not None
        assert report.lists_read is not None
        assert 0 < report.lists_read <= report.lists


def test_bounds_of_codes_hold_the_exact_mass(opened: Opening) -> None:
    spread, single = opened(search="int8")
    probes = single.current.moment.probes(PROBES).directions
    exact = GallerySearch.exact(single.current.moment.state.gallery).scan(probes, [40.0, 4.0], top_k=3)
    ours = spread.current.moment.search.scan(probes, [40.0, 4.0], top_k=3)
    assert ours.precision is not None
    assert np.all(np.abs(ours.log_mass - exact.log_mass) <= ours.precision.log_mass_bound + 1e-5)
    assert np.array_equal(ours.top_index, exact.top_index)


def test_auto_is_chosen_for_the_rows_of_a_shard_and_is_the_same_for_all(
    opened: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread, single = opened(n=SMALL, search="auto")
    assert_same(spread.identify(PROBES), single.identify(PROBES))
    report = spread.status().search
    assert report is not None
    assert (report.asked, report.kind) == ("auto", "exact")
    gallery = single.current.moment.state.gallery
    monkeypatch.setattr("holue.recognition.search.choice.EXACT_UP_TO", 1000 * D)
    assert chosen("auto", gallery).kind == "int8"
    assert chosen("auto", gallery, parts=2).kind == "exact"
    assert "each of 2 shards" in chosen("auto", gallery, parts=2).reason
    monkeypatch.setattr("holue.recognition.search.choice.EXACT_UP_TO", 500 * D)
    report = spread.status().search
    assert report is not None
    assert report.kind == "int8"
    # The shards, where the limit is another, do as they are told.
    evidence = spread.current.moment.search.scan(spread.current.moment.probes(PROBES).directions, [9.0], top_k=2)
    assert evidence.precision is not None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ["holue-mc", "holue-closed", "holue-plus"])
def test_calibration_and_answers_of_every_kind_of_method_are_the_same(opened: Opening, method: str) -> None:
    spread, single = opened(n=SMALL, method=method, threshold=None, target_fpir=0.1)
    rng = np.random.default_rng(4)
    labels = np.array([*NAMES[:300], *[holue.UNKNOWN] * 300], dtype=object)
    probes = np.concatenate([X[:300] + 0.3 * rng.standard_normal((300, D)), rng.standard_normal((300, D))])
    spread.calibrate(probes, labels, rng.uniform(50, 400, 600))
    single.refresh()
    assert single.current.calibration == spread.current.calibration
    assert_same(spread.identify(PROBES, KAPPA), single.identify(PROBES, KAPPA))


def test_candidate_sets_are_the_same(opened: Opening) -> None:
    spread, single = opened(n=SMALL)
    moments = spread.current.moment, single.current.moment
    sets = [
        candidate_sets(one.probes(PROBES), one.search, one.state.point, 0.5, 0.6, 0.9, None).to_dict()
        for one in moments
    ]
    assert sets[0] == sets[1]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_audit_and_leave_one_out_calibration_are_a_join_on_the_nodes(opened: Opening) -> None:
    spread, single = opened(n=SMALL, threshold=None, target_fpir=0.1)
    assert spread.clustered is not None
    joined = spread.clustered.join.tasks
    assert spread.audit().to_dict() == single.audit().to_dict()
    assert spread.clustered.join.tasks > joined
    joined = spread.clustered.join.tasks
    entry = spread.calibrate()
    assert spread.clustered.join.tasks > joined
    with holue.open(":memory:", dim=D, method="galue", target_fpir=0.1) as local:
        samples = [(name, one.embedding) for name in NAMES[:SMALL] for one in spread.samples(name)]
        local.enroll(np.array([one for _, one in samples]), [name for name, _ in samples])
        other = local.calibrate()
        assert local.status().threshold == spread.status().threshold
    assert entry.source == other.source == "leave-one-out"
