from __future__ import annotations

import numpy as np
import pytest

from holue.datasets.formats.samples import Samples
from holue.datasets.protocols.ms1m import build_ms1m, load_ms1m, read_ms1m
from holue.errors import InvalidFileError, InvalidParameterError


@pytest.fixture(scope="module")
def owners() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.permutation(np.repeat(np.arange(10, 5210), rng.integers(20, 60, size=5200)))


def test_the_construction_has_the_counts_of_the_paper(owners):
    lists = build_ms1m(owners, np.random.default_rng(0))
    assert lists.counts == {
        "gallery_subjects": 1772,
        "mated_probes": 7088,
        "non_mated_probes": 7036,
        "mated_subjects": 1772,
        "non_mated_subjects": 1759,
    }


def test_the_construction_splits_each_subjects_images_in_five(owners):
    lists = build_ms1m(owners, np.random.default_rng(1))
    images = {subject: int((owners == subject).sum()) for subject in np.unique(lists.subjects)[::50].tolist()}
    known = set(lists.gallery.subject_id.tolist())
    for subject, n in images.items():
        assert n > 30
        probes = lists.probes.where(lists.probes.subject_id == subject)
        _, sizes = np.unique(probes.template_id, return_counts=True)
        assert sizes.tolist() == [n // 5] * 4
        enrolled = lists.gallery.sample[lists.gallery.subject_id == subject]
        assert len(enrolled) == (n - 4 * (n // 5) if subject in known else 0)
        used = np.concatenate([enrolled, probes.sample])
        assert len(set(used.tolist())) == len(used), "no image is in two templates"
        assert (owners[used] == subject).all()
    assert max(known) < min(set(lists.probes.subject_id.tolist()) - known), "the first subjects are the known ones"


def test_the_seed_decides_the_construction(owners):
    first, again, other = (build_ms1m(owners, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first.gallery.sample.tolist() == again.gallery.sample.tolist()
    assert first.gallery.sample.tolist() != other.gallery.sample.tolist()


def test_a_small_construction_joins_embeddings():
    owner = np.repeat(np.arange(8), 31)
    vectors = np.random.default_rng(0).normal(size=(len(owner), 5))
    lists = build_ms1m(owner, np.random.default_rng(0), n_subjects=6, n_known=3)
    part = lists.with_samples(Samples.from_arrays({"embeddings": vectors}, origin="e.npz"))
    assert part.source == "ms1mv2"
    assert (part.counts["mated_probes"], part.counts["non_mated_probes"]) == (12, 12)
    with pytest.raises(InvalidFileError, match=r"e\.npz: 9 embeddings, but .* number 248 samples"):
        lists.with_samples(Samples.from_arrays({"embeddings": vectors[:9]}, origin="e.npz"))


def test_images_may_be_named():
    owner = np.repeat(np.arange(3), 31)
    names = np.array([f"{i}.jpg" for i in range(len(owner))])
    lists = build_ms1m(owner, np.random.default_rng(0), sample=names, n_subjects=3, n_known=1)
    assert lists.gallery.sample.dtype.kind == "U"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_subjects": 4, "n_known": 4}, "n_known must lie between 0 and n_subjects=4"),
        ({"n_subjects": 9, "n_known": 4}, "9 subjects with more than 30 images are needed, the table has 3"),
        ({"n_subjects": 3, "n_known": 1, "more_than": 2}, "more_than must be at least 4"),
    ],
)
def test_a_construction_that_cannot_be_made_says_why(settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        build_ms1m(np.repeat(np.arange(3), 31), np.random.default_rng(0), **settings)


def write_files(folder, *, image_list=True):
    gallery = [(0, 7), (0, 7), (5, 9)]
    probes = [(1, 7), (2, 9), (2, 9), (3, 11)]
    for name, rows in (("gallery_G1", gallery), ("probe_mixed", probes)):
        lines = ["TEMPLATE_ID,SUBJECT_ID,FILENAME", *(f"{t},{s},0" for t, s in rows)]
        (folder / f"ms1m_face_1N_{name}.csv").write_text("\n".join(lines) + "\n")
    if image_list:
        # Template 4, the unused fifth of a stranger, is in the image list only.
        templates = [0, 0, 5, 1, 2, 2, 3, 4]
        lines = [f"{row}.jpg {template} {row}" for row, template in enumerate(templates)]
        (folder / "ms1m_face_tid_mid.txt").write_text("\n".join(lines) + "\n")
    np.savez(folder / "e.npz", embs=np.eye(8), unc=np.zeros((8, 1)))


def test_the_papers_files_join_embeddings_through_the_image_list(tmp_path):
    write_files(tmp_path)
    part = load_ms1m(tmp_path, tmp_path / "e.npz")
    assert part.gallery.subjects.tolist() == [7, 9]
    assert part.mated.tolist() == [True, True, False]
    np.testing.assert_allclose(part.probes.directions[1], (np.eye(8)[4] + np.eye(8)[5]) / np.sqrt(2))


def test_without_the_image_list_templates_are_counted_and_not_guessed(tmp_path):
    write_files(tmp_path, image_list=False)
    lists = read_ms1m(tmp_path)
    assert lists.counts["mated_probes"] == 2
    with pytest.raises(InvalidFileError, match=r"gallery_G1\.csv: .*not which samples .*tid_mid"):
        lists.with_samples(Samples.from_arrays({"embeddings": np.eye(8)}, origin="e.npz"))
    with pytest.raises(InvalidFileError, match=r"ms1m_face_tid_mid\.txt: no such file"):
        load_ms1m(tmp_path, tmp_path / "e.npz")


@pytest.fixture(scope="module")
def real_lists(real_data):
    return read_ms1m(real_data("ms1mv2"))


@pytest.mark.data
def test_the_real_files_have_the_counts_of_the_paper(real_lists):
    counts = real_lists.counts
    assert (counts["gallery_subjects"], counts["mated_probes"], counts["non_mated_probes"]) == (1772, 7088, 7036)


@pytest.mark.data
def test_the_real_files_are_laid_out_as_the_construction_makes_them(real_lists):
    lists = real_lists
    _, enrolled = np.unique(lists.gallery.template_id, return_counts=True)
    subjects = lists.gallery.templates[1]
    templates, owner = lists.probes.templates
    _, images = np.unique(lists.probes.template_id, return_counts=True)
    assert set(np.unique(owner, return_counts=True)[1].tolist()) == {4}
    for subject, remainder in zip(subjects[::100].tolist(), enrolled[::100].tolist(), strict=True):
        sizes = images[owner == subject].tolist()
        total = sum(sizes) + remainder
        assert total > 30
        assert sizes == [total // 5] * 4
    assert (templates % 5 != 4).all()
    assert (lists.gallery.template_id % 5 == 4).all()
