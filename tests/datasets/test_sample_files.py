from __future__ import annotations

import builtins
import importlib

import numpy as np
import pytest

from holue.datasets.formats.samples import Samples, read_samples, write_samples
from holue.datasets.formats.table import read_csv
from holue.errors import InvalidFileError, MissingDependencyError


def everything(n: int = 6) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "embeddings": rng.normal(size=(n, 4)).astype(np.float16),
        "subject_id": np.array(["ann", "bob", "ann", "eve", "bob", "zoë"][:n]),
        "template_id": np.array([1, 2, 1, 3, 2, 4][:n]),
        "media_id": np.arange(n),
        "sample_id": np.array([f"{i}.jpg" for i in range(n)]),
        "group": np.array(["x", "y", "x", "x", "y", "y"][:n]),
        "concentration": rng.gamma(5, size=n),
        "scale": rng.normal(size=n),
        "quality": rng.normal(size=n),
        "variance": rng.gamma(5, size=(n, 4)).astype(np.float32),
    }


def assert_equal(samples: Samples, arrays: dict[str, np.ndarray]) -> None:
    assert set(samples.arrays()) == set(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(samples.arrays()[key], array, err_msg=key)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_samples_come_back_as_they_were_written(tmp_path, suffix):
    samples = Samples.from_arrays(everything(), origin="here")
    path = tmp_path / f"samples{suffix}"
    write_samples(samples, path)
    back = read_samples(path)
    assert_equal(back, everything())
    assert back.embeddings.dtype == np.float16
    assert back.origin == str(path)


def test_the_same_samples_give_the_same_bytes(tmp_path):
    samples = Samples.from_arrays(everything(), origin="here")
    for name in ("a.npz", "b.npz", "a.parquet", "b.parquet"):
        write_samples(samples, tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_parquet_vectors_may_be_lists_of_any_kind(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    vectors = np.arange(12.0).reshape(3, 4) + 1
    for kind in (pa.list_(pa.float32()), pa.large_list(pa.float64()), pa.list_(pa.float32(), 4)):
        ids = pa.array(["a", "b", "b"]).dictionary_encode()
        # Two row groups: a column may arrive in chunks.
        table = pa.table({"embeddings": pa.array(vectors.tolist(), type=kind), "subject_id": ids})
        pq.write_table(table, tmp_path / "s.parquet", row_group_size=2)
        assert_equal(
            read_samples(tmp_path / "s.parquet"), {"embeddings": vectors, "subject_id": np.array(["a", "b", "b"])}
        )


def test_ids_and_scores_may_be_columns_of_a_matrix_one_wide():
    samples = Samples.from_arrays(
        {"embeddings": np.eye(3), "subject_id": np.array([[1], [2], [3]]), "concentration": np.ones((3, 1))},
        origin="here",
    )
    assert samples.subjects.tolist() == [1, 2, 3]
    assert samples.concentration.shape == (3,)


def test_keys_of_other_software_are_skipped(tmp_path):
    np.savez(tmp_path / "s.npz", **everything(), features=np.ones((6, 2)), model="tiny")
    assert_equal(read_samples(tmp_path / "s.npz"), everything())


@pytest.mark.parametrize("key", ["concentrations", "Subject_ID", "subject_ids", "templateid"])
def test_a_key_with_a_slip_of_the_pen_is_not_skipped(tmp_path, key):
    np.savez(tmp_path / "s.npz", embeddings=np.eye(3), subject_id=np.arange(3), **{key: np.arange(3)})
    with pytest.raises(InvalidFileError, match=rf"s\.npz: unknown key '{key}'; did you mean"):
        read_samples(tmp_path / "s.npz")


def with_entry(key: str, value: object, row: int = 2) -> dict[str, np.ndarray]:
    arrays = everything()
    arrays[key] = arrays[key].astype(np.float64)
    arrays[key][row] = value
    return arrays


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (with_entry("embeddings", np.nan), "key 'embeddings' contains NaN or infinity in row 2"),
        (with_entry("embeddings", -np.inf), "key 'embeddings' contains NaN or infinity in row 2"),
        (with_entry("embeddings", 0), "key 'embeddings' is a zero vector, which has no direction, in row 2"),
        ({**everything(), "embeddings": np.ones(6)}, r"key 'embeddings' must be a matrix .* got shape \(6,\)"),
        ({**everything(), "embeddings": np.ones((6, 4), complex)}, "key 'embeddings' must be a matrix of real"),
        ({**everything(), "embeddings": np.empty((0, 4))}, "key 'embeddings' has no rows"),
        ({**everything(), "subject_id": np.arange(5)}, r"key 'subject_id' has shape \(5,\), but 'embeddings' has 6"),
        ({**everything(), "group": np.array(1)}, r"key 'group' has shape \(\)"),
        ({**everything(), "subject_id": np.arange(6) / 2}, "subject_id must hold integers or strings, got dtype float"),
        ({**everything(), "subject_id": np.array(["a"] * 5 + [""])}, r"subject_id\[5\] is an empty id"),
        (with_entry("concentration", 0), "key 'concentration' must be positive and finite .* row 2 is 0"),
        (with_entry("quality", np.nan), "key 'quality' must be finite: row 2 is nan"),
        ({**everything(), "scale": np.ones((6, 2))}, "key 'scale' must hold one real number per row"),
        ({**everything(), "variance": np.ones((6, 3))}, r"key 'variance' must have shape \(n, 4\) or \(n, 1\)"),
        (with_entry("variance", -1), "key 'variance' must be positive and finite, row 2 is not"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused_with_file_key_and_row(tmp_path, arrays, message):
    np.savez(tmp_path / "s.npz", **arrays)
    with pytest.raises(InvalidFileError, match=rf"s\.npz: .*{message}"):
        read_samples(tmp_path / "s.npz")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"", "the file is empty"),
        (b"not an archive", "not an .npz archive"),
        (b"PK\x03\x04 cut short", "damaged or cut short"),
    ],
)
def test_a_file_that_is_no_archive_says_so(tmp_path, content, message):
    path = tmp_path / "s.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidFileError, match=rf"s\.npz: .*{message}"):
        read_samples(path)


def test_every_truncation_of_an_archive_is_a_clear_error(tmp_path):
    write_samples(Samples.from_arrays(everything(), origin="here"), tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    for kept in range(0, len(whole), 97):
        (tmp_path / "s.npz").write_bytes(whole[:kept])
        with pytest.raises(InvalidFileError, match=r"s\.npz"):
            read_samples(tmp_path / "s.npz")


def test_a_damaged_array_names_its_key(tmp_path):
    np.savez(tmp_path / "s.npz", embeddings=np.full((50, 4), 3.0), subject_id=np.arange(50))
    content = bytearray((tmp_path / "s.npz").read_bytes())
    content[600] ^= 0xFF
    (tmp_path / "s.npz").write_bytes(bytes(content))
    with pytest.raises(InvalidFileError, match=r"s\.npz: key 'embeddings' cannot be read"):
        read_samples(tmp_path / "s.npz")


def test_pickled_arrays_are_refused_and_never_run(tmp_path):
    np.savez(tmp_path / "s.npz", embeddings=np.eye(2), subject_id=np.array([1, "a"], dtype=object))
    with pytest.raises(InvalidFileError, match=r"s\.npz: key 'subject_id' holds pickled objects"):
        read_samples(tmp_path / "s.npz")


def test_missing_keys_are_listed_with_what_the_file_holds(tmp_path):
    np.savez(tmp_path / "s.npz", vectors=np.eye(2), subject_id=np.arange(2))
    with pytest.raises(
        InvalidFileError, match=r"s\.npz: missing key 'embeddings'; the file holds 'vectors', 'subject_id'"
    ):
        read_samples(tmp_path / "s.npz")


def test_a_single_array_is_not_an_archive(tmp_path):
    with open(tmp_path / "s.npz", "wb") as file:
        np.save(file, np.eye(3))
    with pytest.raises(InvalidFileError, match=r"a single \.npy array"):
        read_samples(tmp_path / "s.npz")


def test_an_unknown_suffix_is_refused_both_ways(tmp_path):
    with pytest.raises(InvalidFileError, match=r"unknown kind of file '\.csv'"):
        read_samples(tmp_path / "s.csv")
    with pytest.raises(InvalidFileError, match=r"unknown kind of file '\.csv'"):
        write_samples(Samples.from_arrays(everything(), origin="here"), tmp_path / "s.csv")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"embeddings": [[1.0, 2.0], [3.0]], "subject_id": [1, 2]},
            "lists of different lengths: 2 in row 0 and 1 in row 1",
        ),
        ({"embeddings": [[1.0, 2.0], [3.0, None]], "subject_id": [1, 2]}, "key 'embeddings' has null entries inside"),
        ({"embeddings": [[1.0, 2.0], [3.0, 4.0]], "subject_id": [1, None]}, "key 'subject_id' is null in row 1"),
        ({"embeddings": [[1.0, 2.0], [3.0, 4.0]], "subject_id": [True, False]}, "key 'subject_id' has type bool"),
        ({"embeddings": [[1.0, 2.0], [3.0, 4.0]]}, "missing key 'subject_id'; the table holds 'embeddings'"),
    ],
)
def test_a_parquet_table_that_breaks_a_rule_names_file_and_column(tmp_path, columns, message):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    with pytest.raises(InvalidFileError, match=rf"s\.parquet: .*{message}"):
        read_samples(tmp_path / "s.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1 and then nothing"])
def test_a_file_that_is_no_parquet_table_says_so(tmp_path, content):
    pytest.importorskip("pyarrow")
    (tmp_path / "s.parquet").write_bytes(content)
    with pytest.raises(InvalidFileError, match=r"s\.parquet: not a Parquet table"):
        read_samples(tmp_path / "s.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "s.parquet").write_bytes(b"PAR1")
    real = importlib.import_module

    def missing(name, *rest):
        if name.startswith("pyarrow"):
            raise builtins.ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(MissingDependencyError, match=r"pip install 'holue\[report\]'"):
        read_samples(tmp_path / "s.parquet")


def test_ids_that_end_in_nul_are_refused_in_tables(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow as pa

    pq.write_table(
        pa.table({"embeddings": [[1.0, 2.0], [2.0, 1.0]], "subject_id": ["a", "a\0"]}), tmp_path / "s.parquet"
    )
    with pytest.raises(InvalidFileError, match="ends in a NUL"):
        read_samples(tmp_path / "s.parquet")
    (tmp_path / "s.csv").write_text("image,id\n1,a\n2,a\0\n")
    with pytest.raises(InvalidFileError, match="ends in a NUL"):
        read_csv(tmp_path / "s.csv", columns=["image", "id"])
