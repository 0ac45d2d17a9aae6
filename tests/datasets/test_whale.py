from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holue.datasets.formats.protocol_file import load_lists, save_lists
from holue.datasets.protocols.whale import build_whale, load_whale, read_whale
from holue.errors import InvalidFileError, InvalidParameterError


def table_of(sizes) -> tuple[np.ndarray, np.ndarray]:
    owner = np.repeat(np.arange(len(sizes)), sizes)
    order = np.random.default_rng(len(owner)).permutation(len(owner))
    return np.array([f"{row}.jpg" for row in range(len(owner))]), np.array([f"w{i}" for i in owner[order]])


@given(st.lists(st.integers(1, 7), min_size=4, max_size=30), st.integers(0, 2**32))
def test_every_image_is_used_once_and_singletons_are_never_enrolled(sizes, seed):
    images, individuals = table_of(sizes)
    truth, counts = dict(zip(images.tolist(), individuals.tolist(), strict=True)), Counter(individuals.tolist())
    lists = build_whale(images, individuals, np.random.default_rng(seed), n_development=len(sizes) // 2)
    tables = [table for part in (lists.development, lists.evaluation) for table in (part.gallery, part.probes)]
    used = [name for table in tables for name in table.sample.tolist()]
    assert sorted(used) == sorted(images.tolist())
    for table in tables:
        assert all(truth[name] == owner for name, owner in zip(table.sample, table.subject_id, strict=True))
    for part in (lists.development, lists.evaluation):
        enrolled = Counter(part.gallery.subject_id.tolist())
        searched = Counter(part.probes.subject_id.tolist())
        several = {owner for owner in searched if counts[owner] > 1}
        assert set(enrolled) == several
        assert all(enrolled[owner] == counts[owner] // 2 for owner in several)
        assert part.counts["mated_probes"] == len(several), "one probe template per individual"
        assert part.counts["non_mated_probes"] == len(searched) - len(several)
    assert len(lists.development.subjects) == len(sizes) // 2


def test_images_are_split_at_random_and_by_the_seed():
    images, individuals = table_of([40, 40, 40, 40])
    first, again, other = (
        build_whale(images, individuals, np.random.default_rng(seed), n_development=2) for seed in (1, 1, 2)
    )
    assert first.evaluation.gallery.sample.tolist() == again.evaluation.gallery.sample.tolist()
    assert set(first.evaluation.gallery.sample) != set(other.evaluation.gallery.sample)


def write_table(path, sizes):
    images, individuals = table_of(sizes)
    rows = [f"{image},beluga,{individual}" for image, individual in zip(images, individuals, strict=True)]
    path.write_text("image,species,individual_id\n" + "\n".join(rows) + "\n")
    return images


def test_embeddings_are_found_by_name_or_by_the_order_of_the_table(tmp_path):
    images = write_table(tmp_path / "train.csv", [1, 2, 3, 4] * 5)
    vectors = np.random.default_rng(0).normal(size=(len(images), 4))
    order = np.random.default_rng(1).permutation(len(images))
    np.savez(tmp_path / "ordered.npz", embs=vectors, unc=np.zeros((len(images), 1)))
    np.savez(tmp_path / "named.npz", embeddings=vectors[order], sample_id=images[order])
    np.savez(tmp_path / "fewer.npz", embeddings=vectors[:9])
    np.savez(tmp_path / "lacking.npz", embeddings=vectors[:9], sample_id=images[:9])
    np.savez(tmp_path / "twice.npz", embeddings=vectors, sample_id=np.where(images == "1.jpg", "0.jpg", images))
    by_order, by_name = (
        load_whale(tmp_path / "train.csv", tmp_path / f"{n}.npz", seed=0, n_development=8) for n in ("ordered", "named")
    )
    np.testing.assert_allclose(by_order.evaluation.probes.directions, by_name.evaluation.probes.directions, atol=1e-12)
    assert by_order.notes == ("seed: 0", "n_development: 8")
    for name, message in (
        ("fewer", "9 embeddings for the 50 images"),
        ("lacking", "key 'sample_id' lacks .* of the .* samples listed by"),
        ("twice", r"key 'sample_id' holds '0\.jpg' more than once"),
    ):
        with pytest.raises(InvalidFileError, match=rf"{name}\.npz: .*{message}"):
            load_whale(tmp_path / "train.csv", tmp_path / f"{name}.npz", n_development=8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,individual_id\na,b\n", "missing column 'species'; expected .* found 'image', 'individual_id'"),
        ("image,species,individual_id\na,b,c\na,b,d\n", "column 'image' repeats 'a'"),
    ],
)
def test_a_faulty_table_is_named(tmp_path, text, message):
    (tmp_path / "train.csv").write_text(text)
    with pytest.raises(InvalidFileError, match=rf"train\.csv: .*{message}"):
        read_whale(tmp_path / "train.csv")


def test_a_table_with_too_few_individuals_is_refused(tmp_path):
    write_table(tmp_path / "train.csv", [1, 2])
    with pytest.raises(InvalidParameterError, match="between 0 and the table's 2 individuals, got 5000"):
        read_whale(tmp_path / "train.csv")


@pytest.mark.data
def test_the_real_table_gives_the_counts_of_the_paper(real_data):
    lists = read_whale(real_data("happywhale/train.csv"))
    development, evaluation = lists.development.counts, lists.evaluation.counts
    assert (development["non_mated_probes"], development["gallery_subjects"]) == (2985, 2015)
    assert (evaluation["non_mated_probes"], evaluation["gallery_subjects"]) == (6273, 4314)


@pytest.mark.data
def test_the_real_protocol_is_saved_and_read_back_identically(real_data, tmp_path):
    lists = read_whale(real_data("happywhale/train.csv"), seed=0)
    save_lists(lists, tmp_path / "whale.csv")
    save_lists(load_lists(tmp_path / "whale.csv"), tmp_path / "again.csv")
    assert (tmp_path / "whale.csv").read_bytes() == (tmp_path / "again.csv").read_bytes()
    counts = load_lists(tmp_path / "whale.csv").evaluation.counts
    # Seed 0 is not the paper's: the same kinds of counts, two individuals apart.
    assert (counts["non_mated_probes"], counts["gallery_subjects"]) == (6275, 4312)
