from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holue.datasets.formats.lists import PartLists, ProtocolLists, TemplateList
from holue.datasets.formats.protocol_file import load_lists, save_lists
from holue.datasets.formats.samples import Samples
from holue.errors import InvalidFileError, InvalidInputError, InvalidSubjectsError

NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


def table(subjects, *, sample=None, media=None, first_template=0) -> TemplateList:
    templates = np.arange(len(subjects)) + first_template
    return TemplateList(templates, np.asarray(subjects), sample, media)


def lists_of(development, evaluation, **columns) -> ProtocolLists:
    parts = (
        PartLists(table(ids[:1], **columns), table(ids, **columns), f"source {number}")
        for number, ids in enumerate((development, evaluation))
    )
    return ProtocolLists("made", *parts, {"seed": 3, "how": "by hand"})


def assert_identical(first: ProtocolLists, second: ProtocolLists) -> None:
    assert (first.name, dict(first.settings)) == (second.name, dict(second.settings))
    for one, other in ((first.development, second.development), (first.evaluation, second.evaluation)):
        assert (one.source, one.n_samples) == (other.source, other.n_samples)
        for mine, yours in ((one.gallery, other.gallery), (one.probes, other.probes)):
            for name in ("template_id", "subject_id", "sample", "media_id"):
                left, right = getattr(mine, name), getattr(yours, name)
                assert (left is None) == (right is None), name
                if left is not None:
                    assert left.dtype.kind == right.dtype.kind
                    assert left.tolist() == right.tolist()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(
    st.lists(NAMES, min_size=1, max_size=5, unique=True),
    st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=5, unique=True),
)
def test_lists_come_back_identically_whatever_their_ids(tmp_path, names, numbers):
    path = tmp_path / "protocol.csv"
    path.unlink(missing_ok=True)
    lists = lists_of(names, numbers)
    save_lists(lists, path)
    assert_identical(lists, load_lists(path))


def test_numbers_spelled_as_strings_stay_strings(tmp_path):
    lists = ProtocolLists(
        "digits",
        PartLists(
            table(["007"], sample=np.array(["1"]), media=np.array([5])),
            table(["7"], sample=np.array(["2"]), media=np.array([6]), first_template=9),
            "a",
        ),
        PartLists(table(["1"], sample=np.array([0])), table(["2"], sample=np.array([1])), "b", 2),
    )
    save_lists(lists, tmp_path / "p.csv")
    assert_identical(lists, load_lists(tmp_path / "p.csv"))


def test_the_file_is_a_plain_table_to_others(tmp_path):
    pandas = pytest.importorskip("pandas")
    save_lists(lists_of(["a", "b"], ["c", "d", "e"]), tmp_path / "p.csv")
    frame = pandas.read_csv(tmp_path / "p.csv", skiprows=1)
    assert frame.columns.tolist() == ["part", "role", "template_id", "subject_id", "sample", "media_id"]
    assert frame.groupby(["part", "role"]).size().tolist() == [1, 2, 1, 3]


def test_an_existing_file_is_not_replaced_and_a_failure_leaves_none(tmp_path, monkeypatch):
    lists = lists_of(["a", "b"], ["c", "d"])
    save_lists(lists, tmp_path / "p.csv")
    with pytest.raises(InvalidFileError, match=r"p\.csv: exists already"):
        save_lists(lists, tmp_path / "p.csv")

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        save_lists(lists, tmp_path / "q.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: "", "not a protocol file"),
        (lambda text: text.split("\n", 1)[1], "not a protocol file: its first line must be .*found 'part,role"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "version 2; this release reads .* version 1"),
        (lambda text: text.replace('"format": "holue-protocol"', '"format": "other"'), "format 'other'"),
        (lambda text: text.replace("template_id,subject_id,", "template,subject_id,"), "missing column 'template_id'"),
        (
            lambda text: text.replace("evaluation,gallery", "evaluation,probe"),
            "no rows with part 'evaluation' and role",
        ),
        (
            lambda text: text.replace("\ndevelopment,gallery,0,", "\ndevelopment,gallery,x,"),
            "'template_id' must hold int",
        ),
    ],
)
def test_a_faulty_file_is_refused_and_named(tmp_path, spoil, message):
    path = tmp_path / "p.csv"
    save_lists(lists_of(["a", "b"], ["c", "d"]), path)
    path.write_text(spoil(path.read_text()))
    with pytest.raises(InvalidFileError, match=rf"p\.csv: .*{message}"):
        load_lists(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidFileError, match=r"absent\.csv: no such file"):
        load_lists(tmp_path / "absent.csv")


def test_lists_of_one_source_must_not_share_subjects():
    part = PartLists(table(["a"]), table(["a", "b"]), "same")
    with pytest.raises(InvalidSubjectsError, match="share 2 subjects"):
        ProtocolLists("shared", part, part)


def test_columns_of_a_list_must_agree():
    with pytest.raises(InvalidInputError, match="sample has 1 rows, template_id 2"):
        table(["a", "b"], sample=np.array(["x"]))


def test_row_numbers_outside_the_embeddings_are_refused():
    lists = PartLists(table([1], sample=np.array([0])), table([1, 2], sample=np.array([1, 9]), first_template=5))
    with pytest.raises(InvalidFileError, match=r"sample 9 is not a row of e\.npz, which has 3 rows"):
        lists.with_samples(Samples.from_arrays({"embeddings": np.eye(3)}, origin="e.npz"))
