from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.datasets.formats.folder import load_folder
from holue.datasets.formats.samples import Samples, write_samples
from holue.datasets.split import split_file, split_open_set
from holue.errors import InvalidFileError, InvalidParameterError


def samples_of(subject_id, **columns) -> Samples:
    vectors = np.random.default_rng(0).normal(size=(len(subject_id), 4))
    return Samples.from_arrays(
        {
            "embeddings": vectors,
            "subject_id": np.asarray(subject_id),
            "sample_id": np.arange(len(subject_id)),
            **columns,
        },
        origin="flat.npz",
    )


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 6), min_size=16, max_size=40),
    st.integers(1, 4),
    st.floats(0.3, 0.7),
    st.integers(0, 2**32),
)
def test_the_split_uses_every_sample_once_and_keeps_subjects_apart(sizes, enrolled, share, seed):
    sizes = [*sizes, 1, 1, 1, 1, 3, 3, 3, 3]
    counts = dict(enumerate(sizes))
    samples = samples_of(np.repeat(np.arange(len(sizes)), sizes))
    split = split_open_set(
        samples, np.random.default_rng(seed), development_share=share, known_share=0.5, enrolled=enrolled
    )
    used = np.concatenate([table.sample_id for table in split.files().values()])
    assert sorted(used.tolist()) == list(range(len(samples)))

    protocol = split.protocol("split")
    for part, gallery in zip(protocol.parts.values(), (split.dev_gallery, split.eval_gallery), strict=True):
        known = part.gallery.subjects.tolist()
        assert all(counts[subject] >= 2 for subject in known)
        assert set(known) <= set(part.probe_subjects.tolist()), "an enrolled subject always has a mated probe"
        for subject in known:
            assert (gallery.subjects == subject).sum() == min(enrolled, counts[subject] - 1)


def test_a_seed_decides_the_split():
    samples = samples_of(np.repeat(np.arange(30), 3))
    first, again, other = (split_open_set(samples, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert first.dev_gallery.sample_id.tolist() == again.dev_gallery.sample_id.tolist()
    assert first.dev_gallery.sample_id.tolist() != other.dev_gallery.sample_id.tolist()


def test_shares_are_shares_of_subjects():
    samples = samples_of(np.concatenate([np.repeat(np.arange(100), 4), np.arange(100, 150)]))
    split = split_open_set(samples, np.random.default_rng(0), development_share=0.2, known_share=0.75)
    protocol = split.protocol("shares")
    assert protocol.development.counts["gallery_subjects"] == 15
    assert protocol.development.counts["non_mated_subjects"] == 5 + 10
    assert protocol.evaluation.counts["gallery_subjects"] == 60
    assert protocol.evaluation.counts["non_mated_subjects"] == 20 + 40


def test_all_subjects_with_several_samples_may_be_known():
    samples = samples_of(np.concatenate([np.repeat(np.arange(20), 2), np.arange(20, 40)]))
    protocol = split_open_set(samples, np.random.default_rng(0), known_share=1).protocol("all known")
    assert protocol.evaluation.counts["gallery_subjects"] == 10
    assert protocol.evaluation.counts["non_mated_subjects"] == 10


@pytest.mark.parametrize("key", ["template_id", "media_id"])
def test_a_template_or_a_video_is_never_cut_in_two(key):
    rng = np.random.default_rng(1)
    subject = np.repeat(np.arange(24), 8)
    unit = subject * 3 + rng.integers(0, 3, size=len(subject))
    split = split_open_set(samples_of(subject, **{key: unit}), np.random.default_rng(2))
    pieces = [set(getattr(table, key).tolist()) for table in split.files().values()]
    assert sum(len(piece) for piece in pieces) == len(set(unit.tolist()))


def test_one_photograph_of_two_people_is_a_medium_of_each():
    subject = np.tile(np.arange(12), 2)
    media = np.concatenate([np.zeros(12, int), np.arange(1, 13)])
    counts = (
        split_open_set(samples_of(subject, media_id=media), np.random.default_rng(0)).protocol("x").evaluation.counts
    )
    assert counts["gallery_subjects"] == 3


def test_a_template_of_two_subjects_is_refused():
    samples = samples_of(np.arange(8) // 2, template_id=np.zeros(8, int))
    with pytest.raises(InvalidFileError, match=r"flat\.npz: template_id 0 holds 4 values of 'subject_id'"):
        split_open_set(samples, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("subject_id", "known_share", "message"),
    [
        (np.arange(20), 0.5, "no known subjects"),
        (np.repeat(np.arange(20), 2), 1, "no non-mated subjects"),
        (np.array([1, 1]), 0.5, "no .* subjects"),
    ],
)
def test_too_few_subjects_of_a_kind_are_refused(subject_id, known_share, message):
    with pytest.raises(InvalidFileError, match=rf"flat\.npz: key 'subject_id': .*{message}"):
        split_open_set(samples_of(subject_id), np.random.default_rng(0), known_share=known_share)


@pytest.mark.parametrize(
    "setting", [{"development_share": 0}, {"development_share": 1}, {"known_share": 1.5}, {"enrolled": 0}]
)
def test_settings_out_of_range_are_named(setting):
    with pytest.raises(InvalidParameterError, match=next(iter(setting))):
        split_open_set(samples_of(np.repeat(np.arange(20), 2)), np.random.default_rng(0), **setting)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_a_file_is_split_into_a_folder_that_loads(tmp_path, suffix):
    write_samples(samples_of(np.repeat(np.arange(30), 3)), tmp_path / f"flat{suffix}")
    split_file(tmp_path / f"flat{suffix}", tmp_path / "a", seed=3)
    split_file(tmp_path / f"flat{suffix}", tmp_path / "b", seed=3)
    assert load_folder(tmp_path / "a").evaluation.counts["gallery_subjects"] == 8
    for file in sorted((tmp_path / "a").rglob(f"*{suffix}")):
        assert file.read_bytes() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_bytes()
    with pytest.raises(InvalidFileError, match="exists already"):
        split_file(tmp_path / f"flat{suffix}", tmp_path / "a")


@pytest.mark.data
def test_faces_in_the_wild_split_into_parts_that_a_cosine_solves(real_data, tmp_path):
    split_file(real_data("lfw/arcface_mbf.npz"), tmp_path / "lfw", seed=0)
    protocol = load_folder(tmp_path / "lfw")
    totals = [part.counts for part in protocol.parts.values()]
    assert sum(len(part.probes) for part in protocol.parts.values()) + 840 == 13233
    assert [count["gallery_subjects"] for count in totals] == [420, 420]
    assert sum(count["non_mated_subjects"] for count in totals) == 5749 - 840
    part = protocol.evaluation
    best = (part.probes.directions @ part.gallery.directions.T).argmax(axis=1)
    correct = (part.gallery.subjects[best] == part.probe_subjects)[part.mated]
    assert correct.mean() > 0.99
