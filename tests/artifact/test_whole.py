"""A file or folder is there whole, or as it was before."""

import errno
import os
import stat
from pathlib import Path

import pytest

from holue.artifact import whole_file, whole_folder, write_artifact, write_text
from holue.artifact.artifact import read_artifact
from holue.artifact.staging import STAGED, hidden_name, staged_folder
from holue.errors import ArtifactError, CannotWriteError


def fill(folder: Path, text: str) -> None:
    with whole_folder(folder) as partial:
        (partial / "inner").mkdir()
        (partial / "inner" / "page").write_text(text)


@pytest.fixture(params=["in one step", "in two steps"])
def swap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual way, and that of file systems which cannot exchange two names."""

    def unsupported(*_: object) -> None:
        raise OSError(errno.EINVAL, "no exchange here")

    if request.param == "in two steps":
        monkeypatch.setattr("holue.artifact.exchange._swap", unsupported)


@pytest.mark.usefixtures("swap")
def test_a_folder_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        fill(tmp_path / "out", text)
        assert (tmp_path / "out" / "inner" / "page").read_text() == text
        assert os.listdir(tmp_path) == ["out"]


@pytest.mark.usefixtures("swap")
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), ValueError("wrong"), KeyboardInterrupt()])
def test_after_a_failure_the_folder_is_as_it_was(tmp_path: Path, failure: BaseException) -> None:
    fill(tmp_path / "out", "one")

    def write_half() -> None:
        with whole_folder(tmp_path / "out") as partial:
            (partial / "half").write_text("a page")
            raise failure

    with pytest.raises((CannotWriteError, ValueError, KeyboardInterrupt)):
        write_half()
    assert (tmp_path / "out" / "inner" / "page").read_text() == "one"
    assert os.listdir(tmp_path) == ["out"]


def test_a_process_that_dies_between_two_renames_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOSYS, "no exchange here")

    monkeypatch.setattr("holue.artifact.exchange._swap", unsupported)
    target, rename = tmp_path / "saved", os.rename
    write_artifact(target, "test", {"save": 1}, {})
    child = os.fork()
    if child == 0:

        def die_after_setting_aside(source: Path, place: Path) -> None:
            rename(source, place)
            if source == target:
                os._exit(9)

        os.rename = die_after_setting_aside  # type: ignore[assignment]
        write_artifact(target, "test", {"save": 2}, {})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert not target.exists()
    assert read_artifact(target, "test")[0] == {"save": 1}
    write_artifact(target, "test", {"save": 3}, {})
    assert read_artifact(target, "test")[0] == {"save": 3}
    assert os.listdir(tmp_path) == ["saved"]


def test_leftovers_of_the_dead_are_removed_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    target = tmp_path / "out"
    left = hidden_name(target)
    left.mkdir()
    (left / "half").write_text("a page")
    hidden_name(target, STAGED).write_text("half a file")
    with staged_folder(target) as alive:
        fill(target, "one")
        assert alive.is_dir()
        assert {path.name for path in tmp_path.iterdir()} == {"out", alive.name}
    assert os.listdir(tmp_path) == ["out"]


def test_a_file_is_replaced_through_links_and_keeps_its_permissions(tmp_path: Path) -> None:
    file, link = tmp_path / "page", tmp_path / "link"
    write_text(file, "one")
    file.chmod(0o640)
    link.symlink_to(file)
    write_text(link, "two")
    assert (file.read_text(), link.is_symlink(), stat.S_IMODE(file.stat().st_mode)) == ("two", True, 0o640)

    def write_half() -> None:
        with whole_file(file) as stream:
            stream.write(b"half")
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        write_half()
    assert file.read_text() == "two"
    assert sorted(os.listdir(tmp_path)) == ["link", "page"]


def test_a_device_is_written_and_never_replaced() -> None:
    write_text("/dev/null", "nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(CannotWriteError, match="No space left"):
        write_text("/dev/full", "something")


@pytest.mark.parametrize("place", ["/proc/nowhere/page", "/proc/page"])
def test_a_place_that_cannot_be_written_is_named(place: str) -> None:
    with pytest.raises(CannotWriteError, match=f"{place}: cannot be written"):
        write_text(place, "text")
    with pytest.raises(CannotWriteError, match=f"{place}: cannot be written"), whole_folder(place):
        pass


def test_a_mount_point_and_a_folder_of_somebody_elses_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotWriteError, match="mount point"), whole_folder("/proc"):
        pass
    (tmp_path / "manifest.json").write_text('{"format": "theirs"}')
    with pytest.raises(ArtifactError, match="is not a saved test"):
        write_artifact(tmp_path, "test", {}, {})
    assert os.listdir(tmp_path) == ["manifest.json"]
