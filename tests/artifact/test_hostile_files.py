"""Files that are not what they claim are an error of holue's, before memory is taken and without waiting."""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holue.artifact import read_artifact, write_artifact
from holue.artifact.archive import read_archive, write_archive
from holue.artifact.artifact import content_digest
from holue.errors import ArtifactError, HolueError, InvalidFileError

HUGE = 10**13


def npy(shape: tuple[int, ...], dtype: str = "<f4", data: bytes = b"") -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_2_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
    return stream.getvalue() + data


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("embeddings.npy", content)
    return stream.getvalue()


BYTES = {
    "nothing": b"",
    "text": b"plainly text",
    "a header of terabytes": npy((HUGE,)),
    "a header of terabytes of strings": npy((2, 2), f"<U{HUGE // 1000}"),
    "a header whose product overflows": npy((2**40, 2**40)),
    "a negative shape": npy((-1, 4), data=b"\0" * 16),
    "an empty shape of terabytes": npy((0, HUGE, HUGE)),
    "strings of no length": npy((HUGE,), "<U0"),
    "too few bytes": npy((4,), data=b"\0" * 15),
    "too many bytes": npy((4,), data=b"\0" * 17),
    "half a header": npy((4,))[:20],
    "an archive": zipped(npy((4,), data=b"\0" * 16)),
    "an object array": npy((1,), "|O", b"\0" * 8),
    "a deep header": b"\x93NUMPY\x01\x00\xff\x0f" + b"(" * 4095,
    "an unknown version": b"\x93NUMPY\x09\x00" + b"\0" * 100,
}


def sign(directory: Path, **files: str) -> None:
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["digest"]
    manifest["files"] |= files
    path.write_text(json.dumps(manifest | {"digest": content_digest(manifest)}))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    write_artifact(tmp_path / "saved", "test", {}, {"rows": np.arange(4.0)})
    return tmp_path / "saved"


@pytest.mark.parametrize("content", BYTES.values(), ids=BYTES.keys())
def test_bytes_that_are_no_array_are_refused_in_a_signed_artifact(saved: Path, content: bytes) -> None:
    (saved / "rows.npy").write_bytes(content)
    sign(saved, **{"rows.npy": hashlib.sha256(content).hexdigest()})
    with pytest.raises(ArtifactError, match=r"rows\.npy"):
        read_artifact(saved, "test")


@pytest.mark.parametrize("content", BYTES.values(), ids=BYTES.keys())
def test_bytes_that_are_no_array_are_refused_in_an_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(zipped(content))
    with pytest.raises(HolueError, match=r"x\.npz: key 'embeddings'"):
        read_archive(tmp_path / "x.npz")


@pytest.mark.parametrize("name", [name for name in BYTES if name != "an archive"])
def test_bytes_that_are_no_archive_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.npz").write_bytes(BYTES[name])
    with pytest.raises(InvalidFileError, match=r"x\.npz: "):
        read_archive(tmp_path / "x.npz")


def test_a_member_that_claims_more_than_its_bytes_can_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("embeddings.npy", npy((HUGE,)) + b"\0" * 1000)
    content = bytearray(path.read_bytes())
    claimed = (2**32 - 2).to_bytes(4, "little")
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = claimed
    path.write_bytes(content)
    with pytest.raises(InvalidFileError, match="cannot be read"):
        read_archive(path)


def put_fifo(path: Path) -> None:
    os.mkfifo(path)


def put_loop(path: Path) -> None:
    path.symlink_to(path)


def put_folder(path: Path) -> None:
    path.mkdir()


def put_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def put_dangling(path: Path) -> None:
    path.symlink_to("nowhere")


PUT = [put_fifo, put_loop, put_folder, put_device, put_dangling]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["rows.npy", "manifest.json"])
@pytest.mark.parametrize("put", PUT)
def test_only_regular_files_are_read(saved: Path, put: Callable[[Path], None], name: str) -> None:
    (saved / name).unlink()
    put(saved / name)
    with pytest.raises(ArtifactError, match=name):
        read_artifact(saved, "test")
    with pytest.raises(ArtifactError):
        read_artifact(saved / name, "test")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("put", PUT)
def test_only_a_regular_file_is_an_archive(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / "x.npz")
    with pytest.raises(InvalidFileError, match=r"x\.npz"):
        read_archive(tmp_path / "x.npz")


MANIFESTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "NaN": lambda m: m | {"content": {"x": float("nan")}},
    "infinity": lambda m: m | {"content": {"x": float("inf")}},
    "no files": lambda m: {**m, "files": None},
    "a file above": lambda m: {**m, "files": {"../rows.npy": ""}},
    "a version of truth": lambda m: m | {"version": True},
    "no version": lambda m: m | {"version": 0},
    "a list": lambda m: [m],
    "another kind": lambda m: m | {"kind": "gallery"},
}


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_a_signed_manifest_that_breaks_a_rule_is_refused(saved: Path, change: Callable[..., Any]) -> None:
    path = saved / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["digest"]
    changed = change(manifest)
    if isinstance(changed, dict):
        changed |= {"digest": content_digest(changed)}
    path.write_text(json.dumps(changed))
    with pytest.raises(ArtifactError):
        read_artifact(saved, "test")


def test_a_number_beyond_floats_and_a_deep_manifest_are_refused(saved: Path) -> None:
    path = saved / "manifest.json"
    for text in (path.read_text().replace('"content": {}', '"content": {"x": 1e999}'), "[" * 100_000, "\xff"):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(ArtifactError, match=r"manifest\.json"):
            read_artifact(saved, "test")


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array(["é", ""]),
                                   np.empty((0, 4)), np.float32(3), np.array([True])], ids=repr)  # fmt: skip
def test_plain_arrays_come_back(tmp_path: Path, array: np.ndarray) -> None:
    write_artifact(tmp_path / "saved", "test", {}, {"x": np.asarray(array)})
    write_archive(tmp_path / "x.npz", {"x": np.asarray(array)})
    for back in (read_artifact(tmp_path / "saved", "test")[1]["x"], read_archive(tmp_path / "x.npz")["x"]):
        np.testing.assert_array_equal(back, array, strict=True)
