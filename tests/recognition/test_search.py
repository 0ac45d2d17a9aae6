"""A recogniser that reads its gallery in another way gives the same answers, up to what it says."""

import numpy as np
import pytest

from holue import OpenSetRecognizer
from holue.datasets.simulated import SimulatedWorld, simulate
from holue.errors import InvalidParameterError
from holue.evidence.ivf.index import SMALLEST_GALLERY, ApproximateIndex
from holue.gallery.gallery import Gallery
from holue.recognition.search import prepared_segments
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.search.prepared_segments import PreparedSegments
from holue.recognition.search.search import SEARCHES


def prepared(recognizer: OpenSetRecognizer) -> tuple:
    """The prepared form of each segment, as it was used for a question."""
    recognizer.predict(recognizer.gallery_.rows(recognizer.gallery_.numbers[:1]))
    search = recognizer.examine(np.ones((1, recognizer.n_features_in_)), [50.0]).reading.search
    assert isinstance(search, GallerySearch)
    return search.prepared


def no_merge(*_: object) -> bool:
    """Leave the segments as they are."""
    return True


def calibrated(search: str, world: SimulatedWorld, development: SimulatedWorld) -> OpenSetRecognizer:
    recognizer = OpenSetRecognizer("holue-plus", search=search).fit(world.gallery.X, world.gallery.y)
    return recognizer.calibrate(
        development.probes.X,
        development.probes.y,
        development.probes.concentration,
        gallery=(development.gallery.X, development.gallery.y),
    )


@pytest.fixture(scope="module")
def city() -> SimulatedWorld:
    """Enough people for an index."""
    return simulate(
        n_subjects=SMALLEST_GALLERY + 20,
        n_strangers=40,
        dim=24,
        concentration=80.0,
        enrolled_samples=1,
        probes_per_person=1,
        look_alike_pairs=20,
        rng=np.random.default_rng(0),
    )


@pytest.fixture(scope="module")
def suburb() -> SimulatedWorld:
    """Other people, to calibrate on."""
    return simulate(
        n_subjects=250, n_strangers=200, dim=24, concentration=80.0, first_subject=50_000, rng=np.random.default_rng(1)
    )


def some(world: SimulatedWorld) -> tuple[np.ndarray, np.ndarray]:
    """A few hundred probes, strangers among them."""
    rows = np.r_[:300, len(world.probes.X) - 40 : len(world.probes.X)]
    return world.probes.X[rows], world.probes.concentration[rows]


@pytest.mark.parametrize("search", ["float16", "int8", "binary"])
def test_a_compressed_search_names_and_decides_as_the_exact_one(
    search: str, world: SimulatedWorld, development: SimulatedWorld
) -> None:
    exact, other = (calibrated(kind, world, development) for kind in ("exact", search))
    known, found = (one.identify(world.probes.X, world.probes.concentration) for one in (exact, other))
    np.testing.assert_array_equal(known.subject, found.subject)
    # κ ≈ 60 and int8 codes of d = 64 are off by at most about 0.01, so log-probabilities by a few tenths at the very most.
    np.testing.assert_allclose(known.p_unknown, found.p_unknown, atol=0.05)
    np.testing.assert_array_equal(exact.predict(world.probes.X), other.predict(world.probes.X))
    np.testing.assert_allclose(
        exact.decision_function(world.probes.X), other.decision_function(world.probes.X), atol=1e-6
    )


def test_an_index_names_and_decides_as_the_exact_search_for_nearly_all(
    city: SimulatedWorld, suburb: SimulatedWorld
) -> None:
    exact, other = (calibrated(kind, city, suburb) for kind in ("exact", "approximate"))
    X, kappa = some(city)
    known, found = exact.identify(X, kappa), other.identify(X, kappa)
    (index,) = prepared(other)
    assert isinstance(index, ApproximateIndex)
    # The index is built to find 0.999 of the mates at a cosine of 0.8; poorer probes may be missed more often.
    assert (known.subject == found.subject).mean() >= 0.98
    assert (exact.predict(X) == other.predict(X)).mean() >= 0.98
    same = known.subject == found.subject
    # What the lists not read weigh is estimated, with errors of some hundredths.
    assert np.quantile(np.abs(known.p_unknown - found.p_unknown)[same], 0.95) < 0.05
    assert (found.p_unknown != known.p_unknown).any(), "an estimate, not the exact scan"


@pytest.mark.parametrize("search", ["float16", "int8", "binary", "approximate"])
def test_a_prepared_segment_serves_every_later_version(
    search: str, city: SimulatedWorld, suburb: SimulatedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    recognizer = calibrated(search, city, suburb)
    enrolled, removed = np.unique(suburb.gallery.y[:6].astype(int)), int(city.gallery.y[0])

    def template(subjects: np.ndarray) -> np.ndarray:
        return recognizer.gallery_.rows(recognizer.gallery_.index_of(subjects))

    (form,) = prepared(recognizer)
    assert form is not None
    monkeypatch.setattr(prepared_segments, "prepare_segment", lambda *_: pytest.fail("prepared again"))
    recognizer.enroll(suburb.gallery.X[:6], suburb.gallery.y[:6])
    assert prepared(recognizer) == (form, None), "the small segment is read exactly"
    assert (recognizer.predict(template(enrolled)) == enrolled).all()
    own = template(np.array([removed]))
    assert recognizer.predict(own)[0] == removed
    recognizer.remove(removed)
    later = prepared(recognizer)[0]
    assert later is not form, "it knows who has left"
    codes = (lambda one: one.lists) if search == "approximate" else (lambda one: one.codes)
    assert codes(later) is codes(form)
    assert recognizer.predict(own)[0] != removed
    recognizer.enroll(-own, [removed])
    assert recognizer.predict(-own)[0] == removed
    assert len(recognizer.gallery_) == len(np.unique(city.gallery.y)) + len(enrolled)


@pytest.mark.parametrize("search", ["exact", "float16", "int8", "binary", "approximate"])
def test_changes_give_the_answers_of_a_gallery_made_from_scratch(search: str, city: SimulatedWorld) -> None:
    rng = np.random.default_rng(5)
    gallery = Gallery.from_samples(city.gallery.X, city.gallery.y)
    segments = PreparedSegments()
    ids = gallery.subjects
    probes = np.concatenate([gallery.directions[::200], city.probes.X[-40:]]).astype(np.float32)
    a = [60.0, 3.0]
    for step in range(12):
        x = rng.normal(size=(30, gallery.dim))
        if step % 3 == 0:
            gallery = gallery.enroll(x, np.arange(10**6 + 100 * step, 10**6 + 100 * step + 30))
        elif step % 3 == 1:
            gallery = gallery.remove(rng.choice(gallery.subjects, 80, replace=False))
        else:
            some = rng.choice(np.intersect1d(ids, gallery.subjects), 30, replace=False)
            gallery = gallery.enroll(x, some, replace=True)
        seen = segments.search(search, gallery, no_merge).scan(probes, a, top_k=3)
        scratch = Gallery.of(gallery.subjects, gallery.directions, numbers=gallery.numbers)
        exact = GallerySearch.exact(scratch).scan(probes, a, top_k=3)
        assert seen.n_subjects == exact.n_subjects == len(gallery)
        if search == "approximate":
            assert (seen.top_index[:, 0] == exact.top_index[:, 0])[:-40].mean() >= 0.98, "mates are found"
            off = np.abs(seen.log_mass - exact.log_mass)
            assert (off <= 3 * seen.precision.log_mass_error + 1e-4).mean() >= 0.97
            continue
        np.testing.assert_array_equal(seen.top_index, exact.top_index)
        np.testing.assert_array_equal(seen.top_scores, exact.top_scores)
        if search == "binary":
            off = np.abs(seen.log_mass - exact.log_mass)
            assert (off <= 3 * seen.precision.log_mass_error + 3e-5).mean() >= 0.99
            continue
        bound = 0.0 if search == "exact" else seen.precision.log_mass_bound
        # A float32 cosine is good to some 1e-7.
        assert (np.abs(seen.log_mass - exact.log_mass) <= bound + 3e-5).all()


def test_a_search_of_an_earlier_version_answers_as_it_did(city: SimulatedWorld) -> None:
    gallery = Gallery.from_samples(city.gallery.X, city.gallery.y)
    segments, probes = PreparedSegments(), gallery.directions[:20].astype(np.float32)
    before = segments.search("approximate", gallery, no_merge).scan(probes, [60.0, 3.0], top_k=2)
    later = gallery.remove(gallery.subjects[:3000])
    assert segments.search("approximate", later, no_merge).scan(probes, [], top_k=1).n_subjects == len(gallery) - 3000
    again = segments.search("approximate", gallery, no_merge).scan(probes, [60.0, 3.0], top_k=2)
    np.testing.assert_array_equal(before.top_index, again.top_index)
    np.testing.assert_array_equal(before.log_mass, again.log_mass)


def test_a_large_gallery_is_searched_by_an_index_that_says_how_sure_it_is() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10_050, 24)).astype(np.float32)
    gallery = Gallery.from_samples(x[:10_000], np.arange(10_000))
    search = GallerySearch.prepare("approximate", gallery)
    probes = gallery.directions[:50].astype(np.float32)
    evidence = search.scan(probes, [20.0, 1.0], top_k=2)
    assert evidence.precision is not None
    np.testing.assert_array_equal(evidence.top_index[:, 0], np.arange(50))
    exact = GallerySearch.exact(gallery).scan(probes, [20.0, 1.0], top_k=2)
    off = np.abs(evidence.log_mass - exact.log_mass)[:, 1]
    assert (off <= 4 * evidence.precision.log_mass_error[:, 1] + 1e-5).mean() > 0.9
    some = evidence.take(np.array([3, 1]))
    assert some.precision is not None
    np.testing.assert_array_equal(some.precision.log_mass_error, evidence.precision.log_mass_error[[3, 1]])
    np.testing.assert_array_equal(some.top_index, evidence.top_index[[3, 1]])


def test_searching_the_same_version_again_prepares_nothing(world: SimulatedWorld) -> None:
    gallery = Gallery.from_samples(world.gallery.X, world.gallery.y)
    for kind in SEARCHES:
        segments = PreparedSegments()
        assert segments.search(kind, gallery, no_merge) is segments.search(kind, gallery, no_merge)


def test_an_unknown_search_is_refused(world: SimulatedWorld) -> None:
    with pytest.raises(InvalidParameterError, match="search must be 'auto' or 'exact' or"):
        OpenSetRecognizer(search="fast").fit(world.gallery.X, world.gallery.y)


def test_a_saved_recogniser_remembers_how_it_searches(
    world: SimulatedWorld, development: SimulatedWorld, tmp_path: object
) -> None:
    recognizer = calibrated("int8", world, development)
    recognizer.save(f"{tmp_path}/r")
    restored = OpenSetRecognizer.load(f"{tmp_path}/r")
    assert restored.search == "int8"
    np.testing.assert_array_equal(restored.predict(world.probes.X), recognizer.predict(world.probes.X))


def test_more_candidates_than_the_index_reads_are_real_subjects() -> None:
    x = np.random.default_rng(2).normal(size=(10_000, 16)).astype(np.float32)
    gallery = Gallery.from_samples(x, np.arange(10_000))
    evidence = GallerySearch.prepare("approximate", gallery).scan(gallery.directions[:2], [10.0], top_k=9_000)
    assert len(set(evidence.top_index[0].tolist())) == 9_000
    assert np.isfinite(evidence.top_scores).all()


def test_calibration_reads_exactly_whatever_the_search(world: SimulatedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = []
    scan = GallerySearch.scan
    monkeypatch.setattr(GallerySearch, "scan", lambda self, *a, **k: kinds.append(self.kind) or scan(self, *a, **k))
    recognizer = OpenSetRecognizer("galue", search="int8").fit(world.gallery.X, world.gallery.y)
    recognizer.calibrate(world.probes.X, world.probes.y, world.probes.concentration)
    recognizer.calibrate_sets(world.probes.X, world.probes.y)
    assert set(kinds) == {"exact"}
    recognizer.predict(world.probes.X[:2])
    assert kinds[-1] == "int8"
    with pytest.raises(InvalidParameterError, match="search must be"):
        recognizer.set_params(search="bogus").predict(world.probes.X[:2])
