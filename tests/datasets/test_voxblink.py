from __future__ import annotations

import numpy as np
import pytest

from holue.datasets.protocols.voxblink import load_voxblink, read_voxblink, read_voxblink_part
from holue.errors import InvalidFileError, InvalidInputError, InvalidSubjectsError


def write_lists(root, size, *, speakers, strangers, name="id{speaker:06d}/vid/{utterance:05d}.wav", utterances=5):
    """Lists as they are published: labels from 0, and the number of enrolled speakers for every stranger."""
    folder = root / size / f"perspk{utterances}"
    folder.mkdir(parents=True)
    gallery, probe = [], []
    for label, speaker in enumerate(speakers):
        gallery += [(name.format(speaker=speaker, utterance=u), label) for u in range(utterances)]
        probe += [(name.format(speaker=speaker, utterance=u), label) for u in range(10, 12)]
    for speaker in strangers:
        probe += [(name.format(speaker=speaker, utterance=u), len(speakers)) for u in range(10, 13)]
    for noun, rows in (("gallery", gallery), ("probe", probe)):
        (folder / noun).write_text("".join(f"{utterance} {label}\n" for utterance, label in rows))
    return folder


@pytest.fixture
def root(tmp_path):
    write_lists(tmp_path, "medium", speakers=[1, 2, 3], strangers=[4])
    write_lists(tmp_path, "large", speakers=[11, 12, 13, 14], strangers=[15, 16])
    return tmp_path


def write_embeddings(root, *lists):
    names = sorted({name for part in lists for table in (part.gallery, part.probes) for name in table.sample.tolist()})
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(names), 6))
    np.savez(root / "e.npz", embeddings=vectors, sample_id=names, concentration=rng.gamma(9, size=len(names)))
    return dict(zip(names, vectors, strict=True))


def test_five_utterances_are_pooled_and_each_probe_stands_alone(root):
    lists = read_voxblink(root)
    vectors = write_embeddings(root, lists.development, lists.evaluation)
    protocol = load_voxblink(root, root / "e.npz")
    part = protocol.evaluation
    assert part.gallery.subjects.tolist() == [f"id{speaker:06d}" for speaker in (11, 12, 13, 14)]
    assert (part.counts["mated_probes"], part.counts["non_mated_probes"]) == (8, 6)
    assert part.counts["non_mated_subjects"] == 2
    assert (len(protocol.development.gallery), protocol.name) == (3, "voxblink large 5")
    unit = [vectors[f"id000012/vid/{u:05d}.wav"] for u in range(5)]
    mean = np.mean([vector / np.linalg.norm(vector) for vector in unit], axis=0)
    np.testing.assert_allclose(part.gallery.directions[1], mean / np.linalg.norm(mean), atol=1e-12)


def test_other_numbers_of_utterances_are_other_protocols(tmp_path):
    for size, first in (("small", 0), ("large", 50)):
        write_lists(tmp_path, size, speakers=[first, first + 1], strangers=[first + 2], utterances=3)
    lists = read_voxblink(tmp_path, development="small", utterances=3)
    assert lists.evaluation.counts["gallery_subjects"] == 2


def test_speakers_of_both_lists_are_an_error_or_leave_development(tmp_path):
    write_lists(tmp_path, "medium", speakers=[1, 2, 3], strangers=[4, 11])
    write_lists(tmp_path, "large", speakers=[11, 1], strangers=[3, 15])
    with pytest.raises(InvalidSubjectsError, match=r"share 3 subjects \('id000001', 'id000003', 'id000011'"):
        read_voxblink(tmp_path)
    lists = read_voxblink(tmp_path, drop_shared=True)
    assert lists.development.subjects.tolist() == ["id000002", "id000004"]
    assert lists.evaluation.counts["gallery_subjects"] == 2
    assert lists.settings["speakers dropped from development"] == 3


def test_names_without_speakers_fall_back_on_labels(tmp_path):
    write_lists(tmp_path, "medium", speakers=[1, 2], strangers=[3], name="m{speaker}u{utterance}")
    write_lists(tmp_path, "large", speakers=[1, 2], strangers=[3], name="l{speaker}u{utterance}")
    lists = read_voxblink(tmp_path)
    assert np.unique(lists.evaluation.gallery.subject_id).tolist() == ["large-perspk5 0", "large-perspk5 1"]
    assert lists.evaluation.counts["mated_probes"] == 4
    assert lists.evaluation.counts["non_mated_subjects"] == 3, "each utterance of a stranger counts for itself"


def spoil(folder, noun, old, new):
    path = folder / noun
    path.write_text(path.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    ("noun", "old", "new", "message"),
    [
        ("gallery", "id000011/vid/00000.wav 0\n", "", "gallery: 5 enrolment utterances .* label '0' has 4"),
        (
            "probe",
            "id000015/vid/00010.wav 4",
            "id000015/vid/00010.wav 7",
            "probe: one label marks all unknown .*'4', '7'",
        ),
        ("probe", "id000015/vid/00010.wav 4", "id000015/vid/00010.wav", "probe: line 9 has 1 fields"),
        ("probe", "id000015/vid/00010.wav", "other/vid/00010.wav", "some utterances start with their speaker"),
        ("probe", "id000015/vid/00010.wav", "id000011/vid/00077.wav", "probe: marked unknown but enrolled: 'id000011'"),
        ("probe", "id000011/vid/00010.wav", "id000012/vid/00077.wav", "probe: label '0' is speaker 'id000011', but"),
        ("gallery", "id000011/vid/00001.wav", "id000019/vid/00001.wav", "gallery: label '0' is speaker 'id000011'"),
    ],
)
def test_lists_that_contradict_themselves_are_refused(root, noun, old, new, message):
    folder = root / "large" / "perspk5"
    spoil(folder, noun, old, new)
    with pytest.raises(InvalidFileError, match=message):
        read_voxblink_part(folder)


def test_two_labels_for_one_speaker_are_refused(tmp_path):
    folder = write_lists(tmp_path, "large", speakers=[1, 1], strangers=[2])
    with pytest.raises(InvalidFileError, match="two labels name the same speaker"):
        read_voxblink_part(folder)


def test_missing_and_empty_lists_are_named(root):
    folder = root / "large" / "perspk5"
    (folder / "probe").write_text("")
    with pytest.raises(InvalidFileError, match="perspk5/probe: the list is empty"):
        read_voxblink(root)
    (folder / "probe").unlink()
    with pytest.raises(InvalidFileError, match="perspk5/probe: no such file"):
        read_voxblink(root)


def test_embeddings_that_lack_an_utterance_are_refused(root):
    lists = read_voxblink(root)
    write_embeddings(root, lists.development)
    with pytest.raises(InvalidInputError, match=r"e\.npz: key 'sample_id' lacks 20 of the 20 samples"):
        load_voxblink(root, root / "e.npz")
