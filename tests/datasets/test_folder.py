from __future__ import annotations

import numpy as np
import pytest

from holue.datasets.formats.folder import load_folder, read_folder, save_folder, write_folder
from holue.datasets.formats.part import part_from_samples
from holue.errors import InvalidFileError, InvalidParameterError
from holue.evaluation.protocol import IdentificationProtocol
from holue.gallery.pooling import pool_scores


def test_probes_without_templates_are_one_each_in_the_order_of_the_file(folder_arrays, write_protocol_folder):
    part = load_folder(write_protocol_folder(folder_arrays)).evaluation
    assert part.gallery.subjects.tolist() == ["eval-a", "eval-b"]
    assert part.probe_subjects.tolist() == [f"eval-{name}" for name in "abccab"]
    assert part.mated.tolist() == [True, True, False, False, True, True]
    assert part.probe_templates is None
    given = folder_arrays["eval/probes"]["embeddings"].astype(np.float64)
    np.testing.assert_allclose(  # float32 files: one rounding of the norm and one of the quotient
        part.probes.directions, given / np.linalg.norm(given, axis=1, keepdims=True), rtol=0, atol=2e-7
    )


def test_the_protocol_is_named_after_its_folder(folder_arrays, write_protocol_folder):
    assert load_folder(write_protocol_folder(folder_arrays)).name == "protocol"


def slow_template(vectors: np.ndarray, media: np.ndarray) -> np.ndarray:
    """Mean within a medium of unit samples, sum over media, normalise: spelled out."""
    unit = [vector / np.linalg.norm(vector) for vector in vectors.astype(np.float64)]
    total = np.zeros(vectors.shape[1])
    for medium in sorted(set(media.tolist())):
        total += np.mean([v for v, m in zip(unit, media, strict=True) if m == medium], axis=0)
    return total / np.linalg.norm(total)


@pytest.mark.parametrize("rows_at_once", [5, 65536])
def test_templates_are_pooled_per_medium_like_the_slow_reference(
    folder_arrays, write_protocol_folder, monkeypatch, rows_at_once
):
    monkeypatch.setattr("holue.datasets.formats.part.ROWS_AT_ONCE", rows_at_once)
    rng = np.random.default_rng(3)
    n = 40
    template = rng.integers(0, 9, size=n)
    media = rng.integers(0, 4, size=n)
    kappa, quality, variance = rng.gamma(4, size=n), rng.normal(size=n), rng.gamma(4, size=(n, 8))
    vectors = rng.normal(size=(n, 8))
    subject = np.array([f"eval-{'abcdefghi'[t]}" for t in template])
    folder_arrays["eval/probes"] = {
        "embeddings": vectors,
        "subject_id": subject,
        "template_id": template,
        "media_id": media,
        "concentration": kappa,
        "quality": quality,
        "variance": variance,
        "group": np.where(template < 4, "young", "old"),
    }
    part = load_folder(write_protocol_folder(folder_arrays)).evaluation
    assert part.probe_templates.tolist() == sorted(set(template.tolist()))
    for row, key in enumerate(part.probe_templates):
        of = template == key
        np.testing.assert_allclose(part.probes.directions[row], slow_template(vectors[of], media[of]), atol=1e-12)
        for name, scores in (("concentration", kappa), ("quality", quality), ("pfe", -8 / (1 / variance).sum(axis=1))):
            means = [scores[of & (media == medium)].mean() for medium in np.unique(media[of])]
            assert part.qualities[name][row] == pytest.approx(np.mean(means), rel=1e-12)
        assert part.probes.concentrations[row] == pytest.approx(part.qualities["concentration"][row], rel=1e-12)
        assert part.probe_subjects[row] == subject[of][0]
        assert part.groups[row] == ("young" if key < 4 else "old")


def test_scores_without_media_are_plain_means():
    scores = np.array([1.0, 2.0, 6.0, 5.0])
    assert pool_scores(scores, np.array(["b", "b", "b", "a"])).tolist() == [5.0, 3.0]


def test_the_gallery_is_pooled_per_subject_whatever_its_templates(folder_arrays, write_protocol_folder):
    folder_arrays["eval/gallery"]["template_id"] = np.arange(4)
    part = load_folder(write_protocol_folder(folder_arrays)).evaluation
    assert len(part.gallery) == 2
    expected = slow_template(folder_arrays["eval/gallery"]["embeddings"][:2], np.arange(2))
    np.testing.assert_allclose(part.gallery.directions[0], expected, atol=3e-7)  # float32


def test_parquet_and_npz_give_the_same_protocol(folder_arrays, write_protocol_folder, tmp_path):
    pytest.importorskip("pyarrow")
    for arrays in folder_arrays.values():
        arrays["concentration"] = np.linspace(1, 2, len(arrays["embeddings"]))
        arrays["embeddings"] = arrays["embeddings"].astype(np.float16)
    folder = write_protocol_folder(folder_arrays)
    write_folder(read_folder(folder), tmp_path / "tables", suffix=".parquet")
    assert sorted(path.name for path in (tmp_path / "tables" / "dev").iterdir()) == [
        "gallery.parquet",
        "probes.parquet",
    ]
    assert_same(load_folder(folder), load_folder(tmp_path / "tables"))


def assert_same(first: IdentificationProtocol, second: IdentificationProtocol, *, atol: float = 0) -> None:
    for one, other in zip(first.parts.values(), second.parts.values(), strict=True):
        assert one.gallery.subjects.tolist() == other.gallery.subjects.tolist()
        assert one.probe_subjects.tolist() == other.probe_subjects.tolist()
        np.testing.assert_allclose(one.gallery.directions, other.gallery.directions, rtol=0, atol=atol)
        np.testing.assert_allclose(one.probes.directions, other.probes.directions, rtol=0, atol=atol)
        assert set(one.qualities) == set(other.qualities)
        for name, column in one.qualities.items():
            np.testing.assert_allclose(column, other.qualities[name], rtol=1e-12)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_a_saved_protocol_loads_as_the_same_protocol(folder_arrays, write_protocol_folder, tmp_path, suffix):
    rng = np.random.default_rng(2)
    for name, arrays in folder_arrays.items():
        n = len(arrays["embeddings"])
        arrays |= {"concentration": rng.gamma(5, size=n), "variance": rng.gamma(5, size=(n, 8))}
        if name.endswith("probes"):
            arrays |= {"template_id": np.array([5, 3, 1, 1, 2, 4]), "scale": rng.normal(size=n)}
    protocol = load_folder(write_protocol_folder(folder_arrays))
    save_folder(protocol, tmp_path / "saved", suffix=suffix)
    assert_same(protocol, load_folder(tmp_path / "saved"), atol=2e-7)  # float32 directions are normalised again


def test_saving_parts_of_two_sources_keeps_their_subjects_apart(folder_arrays, write_protocol_folder, tmp_path):
    for arrays in folder_arrays.values():
        arrays["subject_id"] = np.array([ord(name[-1]) for name in arrays["subject_id"]])
    folder = write_protocol_folder(folder_arrays)
    with pytest.raises(InvalidFileError, match="share 3 subjects"):
        load_folder(folder)
    files = read_folder(folder)
    development = part_from_samples(files.dev_gallery, files.dev_probes, source="ms1mv2")
    evaluation = part_from_samples(files.eval_gallery, files.eval_probes, source="ijbc")
    save_folder(IdentificationProtocol("two", development, evaluation), tmp_path / "saved")
    back = load_folder(tmp_path / "saved")
    assert back.development.gallery.subjects.tolist() == ["ms1mv2:97", "ms1mv2:98"]
    assert back.evaluation.mated.tolist() == evaluation.mated.tolist()


def test_an_existing_folder_is_never_written_over_and_nothing_is_left_behind(
    folder_arrays, write_protocol_folder, tmp_path, monkeypatch
):
    folder = write_protocol_folder(folder_arrays)
    samples = read_folder(folder)
    with pytest.raises(InvalidFileError, match="exists already"):
        write_folder(samples, folder)
    with pytest.raises(InvalidFileError, match="no such folder to write"):
        write_folder(samples, tmp_path / "absent" / "new")

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr("holue.datasets.formats.folder.write_samples", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_folder(samples, tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["protocol"]


def remove_non_mated(files):
    files["eval/probes"] = {key: array[[0, 1, 4]] for key, array in files["eval/probes"].items()}


def remove_mated(files):
    files["dev/probes"] = {key: array[[2, 3]] for key, array in files["dev/probes"].items()}


def share_subjects(files):
    for noun in ("gallery", "probes"):
        files[f"dev/{noun}"]["subject_id"] = files[f"eval/{noun}"]["subject_id"]


def number_the_probes(files):
    files["dev/probes"]["subject_id"] = np.arange(6)


def mix_a_template(files):
    files["eval/probes"]["template_id"] = np.array([1, 1, 2, 3, 4, 5])


def mix_groups(files):
    files["eval/probes"] |= {"template_id": np.array([1, 2, 3, 3, 4, 5]), "group": np.arange(6)}


def other_model(files):
    files["eval/probes"]["embeddings"] = np.ones((6, 9))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (remove_non_mated, r"eval/probes\.npz: subject_id: the evaluation part has no non-mated probes"),
        (remove_mated, r"dev/probes\.npz: subject_id: the development part has no mated probes"),
        (share_subjects, r"dev/probes\.npz and .*eval/probes\.npz.*share 3 subjects \('eval-a', 'eval-b', 'eval-c'\)"),
        (number_the_probes, r"dev/gallery\.npz and .*dev/probes\.npz: subject_id: the gallery's are strings"),
        (mix_a_template, r"eval/probes\.npz: template_id 1 holds 2 values of 'subject_id' \('eval-a', 'eval-b'\)"),
        (mix_groups, r"eval/probes\.npz: template_id 3 holds 2 values of 'group' \(2, 3\)"),
        (
            other_model,
            r"eval/gallery\.npz and .*eval/probes\.npz: embeddings: probes have 9 features and the gallery has 8",
        ),
    ],
)
def test_a_faulty_protocol_is_refused_with_the_file_and_the_key(folder_arrays, write_protocol_folder, spoil, message):
    spoil(folder_arrays)
    with pytest.raises(InvalidFileError, match=message):
        load_folder(write_protocol_folder(folder_arrays))


def test_samples_that_cancel_are_refused_with_their_file(folder_arrays, write_protocol_folder):
    folder_arrays["dev/gallery"]["embeddings"][:2] = [[1] * 8, [-1] * 8]
    with pytest.raises(InvalidFileError, match=r"dev/gallery\.npz: the samples of .*cancel"):
        load_folder(write_protocol_folder(folder_arrays))


def test_a_weighting_is_passed_on_and_a_wrong_one_is_not_blamed_on_the_file(folder_arrays, write_protocol_folder):
    folder_arrays["dev/gallery"]["concentration"] = np.array([1e6, 1.0, 1.0, 1.0])
    folder_arrays["eval/gallery"]["concentration"] = np.ones(4)
    folder = write_protocol_folder(folder_arrays)
    weighted = load_folder(folder, weighting="concentration").development.gallery.directions[0]
    first = folder_arrays["dev/gallery"]["embeddings"][0]
    np.testing.assert_allclose(weighted, first / np.linalg.norm(first), atol=5e-6)  # the other sample weighs 1e-6
    with pytest.raises(InvalidParameterError, match=r"^weighting must be one of"):
        load_folder(folder, weighting="best")


def test_missing_folders_and_files_are_named(folder_arrays, write_protocol_folder, tmp_path):
    with pytest.raises(InvalidFileError, match="absent: no such folder"):
        load_folder(tmp_path / "absent")
    folder = write_protocol_folder(folder_arrays)
    (folder / "eval" / "probes.npz").rename(folder / "eval" / "probe.npz")
    with pytest.raises(InvalidFileError, match=r"eval/probes\.npz: no such file .*'gallery\.npz', 'probe\.npz'"):
        load_folder(folder)
    (folder / "eval").rename(folder / "test")
    with pytest.raises(InvalidFileError, match="missing folder 'eval'; expected dev/ and eval/, found 'dev', 'test'"):
        load_folder(folder)


def test_two_files_for_one_role_are_ambiguous(folder_arrays, write_protocol_folder):
    folder = write_protocol_folder(folder_arrays)
    (folder / "dev" / "gallery.parquet").write_bytes(b"")
    with pytest.raises(InvalidFileError, match=r"holds both gallery\.npz and gallery\.parquet"):
        load_folder(folder)


def test_further_groups_are_kept_and_pooled_with_their_template(folder_arrays, write_protocol_folder, tmp_path):
    probes = folder_arrays["eval/probes"]
    n = len(probes["subject_id"])
    probes["group_sex"] = np.array(["f", "m"])[np.unique(probes["subject_id"], return_inverse=True)[1] % 2]
    probes["group_age"] = np.full(n, 9)
    part = load_folder(write_protocol_folder(folder_arrays)).evaluation
    assert {"sex", "age"} <= set(part.group_columns)
    np.testing.assert_array_equal(part.more_groups["sex"], probes["group_sex"])
    protocol = load_folder(write_protocol_folder(folder_arrays))
    save_folder(protocol, tmp_path / "again")
    again = load_folder(tmp_path / "again").evaluation
    np.testing.assert_array_equal(again.more_groups["age"], probes["group_age"])
    probes["template_id"] = np.arange(n) // 2 + 100
    probes["subject_id"] = np.repeat([f"eval-{name}" for name in "abc"], 2)[:n]
    probes["group_sex"] = np.repeat(["f", "m", "f"], 2)[:n]
    pooled = load_folder(write_protocol_folder(folder_arrays)).evaluation
    assert pooled.more_groups["sex"].tolist() == ["f", "m", "f"]


def test_names_of_samples_are_kept_for_probes_of_one_sample(folder_arrays, write_protocol_folder):
    names = np.array([f"{i}.jpg" for i in range(6)])
    folder_arrays["eval/probes"]["sample_id"] = names
    part = load_folder(write_protocol_folder(folder_arrays)).evaluation
    assert part.probe_samples.tolist() == names.tolist()
    assert part.probe_names == names.tolist()


def test_a_template_of_several_samples_goes_by_its_own_name(folder_arrays, write_protocol_folder):
    # Subjects of the six probes: a, b, c, c, a, b; the two of c are one template.
    folder_arrays["eval/probes"] |= {
        "sample_id": np.array([f"{i}.jpg" for i in range(6)]),
        "template_id": np.array(["t5", "t4", "t3", "t3", "t2", "t1"]),
    }
    part = load_folder(write_protocol_folder(folder_arrays)).evaluation
    assert part.probe_templates.tolist() == ["t1", "t2", "t3", "t4", "t5"]
    assert part.probe_samples.tolist() == ["5.jpg", "4.jpg", "", "1.jpg", "0.jpg"]
    assert part.probe_names == ["5.jpg", "4.jpg", "t3", "1.jpg", "0.jpg"]


@pytest.mark.parametrize("pooled", [False, True])
def test_saving_a_protocol_keeps_the_names_it_has(folder_arrays, write_protocol_folder, tmp_path, pooled):
    folder_arrays["eval/probes"]["sample_id"] = np.array([f"{i}.jpg" for i in range(6)])
    if pooled:
        folder_arrays["eval/probes"]["template_id"] = np.array([0, 1, 2, 2, 3, 4])
    protocol = load_folder(write_protocol_folder(folder_arrays))
    save_folder(protocol, tmp_path / "again")
    again = load_folder(tmp_path / "again").evaluation
    if pooled:
        assert again.probe_samples is None
        assert again.probe_names == ["0", "1", "2", "3", "4"]
    else:
        assert again.probe_names == protocol.evaluation.probe_names
