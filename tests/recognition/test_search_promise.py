"""What an approximate search promises about mates at the threshold, and how search="auto" chooses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from holue.errors import UnsuitableSearchError
from holue.evidence.ivf.index import ApproximateIndex
from holue.evidence.ivf.list_loops import count_nearer
from holue.evidence.ivf.missed_mates import MISSED, MissedMates
from holue.evidence.scan import scan
from holue.gallery.gallery import Gallery
from holue.recognition.calibration.doubts import CalibrationWarning
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.saved.index_file import load_index, save_index
from holue.recognition.search import choice
from holue.recognition.search.choice import chosen
from holue.recognition.search.prepared_segments import PreparedSegments

K, D = 10_000, 48
THRESHOLD = 0.62


def unit(x: np.ndarray) -> np.ndarray:
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def no_merge(*_: object) -> bool:
    return False


@pytest.fixture(scope="module")
def root() -> np.ndarray:
    """Of a covariance that falls off as that of faces does: a few directions hold most of it."""
    return np.diag(np.arange(1, D + 1) ** -0.5)


@pytest.fixture(scope="module")
def gallery(root: np.ndarray) -> Gallery:
    x = unit(np.random.default_rng(0).standard_normal((K, D)) @ root)
    return Gallery.from_samples(x, np.arange(K))


@pytest.fixture(scope="module")
def prepared(gallery: Gallery) -> PreparedSegments:
    segments = PreparedSegments()
    segments.search("approximate", gallery, no_merge, 0.9)
    return segments


def mates(gallery: Gallery, root: np.ndarray, cosine: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Probes at a cosine to enrolled people, off in the directions in which people differ."""
    rng = np.random.default_rng(1)
    who = rng.integers(K, size=n)
    rows = gallery.directions[who]
    noise = rng.standard_normal((n, D)) @ root
    noise = unit(noise - np.einsum("ij,ij->i", noise, rows)[:, None] * rows)
    return unit(cosine * rows + np.sqrt(1 - cosine**2) * noise), who


def test_a_search_finds_mates_at_the_threshold_that_the_lists_for_near_mates_lose(
    gallery: Gallery, root: np.ndarray, prepared: PreparedSegments
) -> None:
    probes, _ = mates(gallery, root, THRESHOLD, 4000)
    exact = scan(probes, gallery, [], top_k=1).top_index[:, 0]
    search = prepared.search("approximate", gallery, no_merge, THRESHOLD)
    (index,) = search.prepared
    assert isinstance(index, ApproximateIndex)
    near = index.scan(probes, [], top_k=1).top_index[:, 0]
    assert (near != exact).mean() > 0.02  # as all searches did that did not know the threshold
    for seen in (
        search.scan(probes, [], top_k=1),
        search.scan(probes, [], top_k=1, decisive=THRESHOLD),
    ):
        assert (seen.top_index[:, 0] != exact).mean() <= 2 * MISSED
        assert seen.precision is not None
        assert (seen.precision.missed <= MISSED).all()


def test_the_report_says_how_many_lists_are_read_and_what_is_missed(
    gallery: Gallery, prepared: PreparedSegments
) -> None:
    report = prepared.report("approximate", gallery, THRESHOLD)
    assert report.lists is not None
    assert report.lists_read is not None
    assert 0 < report.lists_read < report.lists
    assert report.missed is not None
    assert report.missed <= MISSED
    assert f"reads {report.lists_read} of {report.lists} lists" in str(report)


def test_lists_of_no_use_are_refused_with_the_figure_and_a_better_search() -> None:
    rng = np.random.default_rng(0)
    people, threshold = unit(rng.standard_normal((K, 24))), 0.2
    recognizer = OpenSetRecognizer("galue", threshold=threshold, search="approximate").fit(people, np.arange(K))
    for _ in range(2):  # and not only the first time
        with pytest.raises(UnsuitableSearchError, match=r"read \d+ of \d+ lists .* 0.001 .* 0.200.*search='int8'"):
            recognizer.identify(people[:2])
    assert OpenSetRecognizer("galue", threshold=threshold, search="int8").fit(people, np.arange(K)).identify(people[:2])


def test_lists_in_use_that_come_to_read_most_keep_answering_and_raise_a_doubt(
    gallery: Gallery, root: np.ndarray, prepared: PreparedSegments
) -> None:
    low = 0.2
    probes, _ = mates(gallery, root, low, 200)
    seen = prepared.search("approximate", gallery, no_merge, low).scan(probes, [], top_k=1)
    assert np.array_equal(seen.top_index, scan(probes, gallery, [], top_k=1).top_index)
    doubt = prepared.report("approximate", gallery, low).doubt
    assert doubt is not None
    assert "search='int8'" in doubt


def test_enrolments_that_move_the_threshold_raise_the_doubt_in_the_recogniser(gallery: Gallery) -> None:
    recognizer = OpenSetRecognizer("galue", threshold=0.9, hold="threshold", search="approximate")
    recognizer.fit(gallery.directions, gallery.subjects)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recognizer.identify(gallery.directions[:1])
    assert not recognizer.doubts()
    cell = recognizer._cell
    cell.change(lambda state: type(state).fitted(state.gallery, type(recognizer)("galue", threshold=0.2)._settings))
    with pytest.warns(CalibrationWarning, match=r"has to read \d+ of \d+ lists"):
        recognizer.identify(gallery.directions[:1])
    assert [doubt.about for doubt in recognizer.doubts()] == ["search"]


def test_lists_nearer_than_the_own_are_counted_as_the_definition_says() -> None:
    rng = np.random.default_rng(0)
    along, aside = rng.standard_normal((2, 5, 33), dtype=np.float32)
    own, ratios = np.array([0, 3, 32, 7, 7]), np.array([0.0, 0.5, 2.0], dtype=np.float32)
    counts = np.empty((5, 3), dtype=np.int64)
    count_nearer(along, aside, own, ratios, counts)
    scores = along[:, None] + ratios[:, None] * aside[:, None]
    mine = np.take_along_axis(scores, own[:, None, None], axis=2)
    assert np.array_equal(counts, (scores >= mine).sum(axis=2))


def test_a_saved_index_keeps_what_was_measured_and_an_earlier_one_reads_all(
    gallery: Gallery, prepared: PreparedSegments, tmp_path
) -> None:
    (index,) = prepared.search("approximate", gallery, no_merge, THRESHOLD).prepared
    assert isinstance(index, ApproximateIndex)
    save_index(index, tmp_path / "index")
    assert load_index(tmp_path / "index", gallery).lists_read(THRESHOLD) == index.lists_read(THRESHOLD)
    assert MissedMates.unknown(64).at(0.9) == (64, 0.0)


def test_auto_reads_small_galleries_exactly_bit_for_bit(gallery: Gallery) -> None:
    answers = []
    for search in ("exact", "auto"):
        recognizer = OpenSetRecognizer("galue", threshold=0.6, search=search)
        recognizer.fit(gallery.directions[:500], gallery.subjects[:500])
        answers.append(recognizer.identify(gallery.directions[:20]).to_dict())
    assert answers[0] == answers[1]
    assert recognizer.search_report.kind == "exact"
    assert "500 subjects" in str(recognizer.search_report)


def test_auto_takes_bytes_then_bits_as_a_gallery_grows_and_where_the_memory_is_short(
    gallery: Gallery, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chosen("auto", gallery).kind == "exact"
    assert chosen("binary", gallery).kind == "binary"
    monkeypatch.setattr(choice, "EXACT_UP_TO", 1000)
    assert chosen("auto", gallery).kind == "int8"
    recognizer = OpenSetRecognizer("galue", threshold=0.6, search="auto").fit(gallery.directions, gallery.subjects)
    exact = OpenSetRecognizer("galue", threshold=0.6, search="exact").fit(gallery.directions, gallery.subjects)
    probes = gallery.directions[:50]
    expected = exact.identify(probes).candidate_scores
    assert np.array_equal(recognizer.identify(probes).candidate_scores, expected), "before the codes are made"
    recognizer._cell.wait_for_preparation()
    assert np.array_equal(recognizer.identify(probes).candidate_scores, expected)
    assert recognizer.search_report.kind == "int8"
    monkeypatch.setattr(choice, "_memory", lambda: 1000.0)
    found = chosen("auto", gallery)
    assert found.kind == "binary"
    assert "of the memory" in found.reason


def test_auto_measures_in_the_background_whether_bits_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    people = unit(np.random.default_rng(4).standard_normal((6400, 64)))
    monkeypatch.setattr(choice, "EXACT_UP_TO", 1000)
    monkeypatch.setattr(choice, "BITS_FROM", 2000)
    # Of people with 400 entries each, bits cannot tell who is nearest: whoever is asked needs a sixteenth of the rows.
    for rows, kind in ((people, "binary"), (np.repeat(people[:16], 400, axis=0), "int8")):
        probes = rows[:50]
        recognizer = OpenSetRecognizer("galue", threshold=0.6).fit(rows, np.arange(len(rows)))
        exact = OpenSetRecognizer("galue", threshold=0.6, search="exact").fit(rows, np.arange(len(rows)))
        for _ in range(2):  # meanwhile, and when all is measured and prepared
            np.testing.assert_array_equal(recognizer.identify(probes).accepted, exact.identify(probes).accepted)
            recognizer._cell.wait_for_preparation()
        report = recognizer.search_report
        assert report.kind == kind
        if kind == "binary":
            assert report.bits in (1, 2)
            assert report.one_bit_share is not None
            assert "per feature, since" in str(report)
        else:
            assert "as measured on rows of this gallery" in str(report)
            assert recognizer._cell.search("auto", recognizer.gallery_).prepared[0] is not None
