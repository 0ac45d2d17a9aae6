"""A disk that is full while a gallery is copied: the error names the place, and nothing is left there."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from holue.errors import CannotWriteError
from holue.store.sqlite.files import ranges
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.store import SqliteStore


def test_a_snapshot_or_a_copy_that_does_not_fit_names_its_place_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranges, "SMALL_BYTES", 1000)  # so that there is a segment file to copy
    with SqliteStore.create(tmp_path / "home", dim=64) as store:
        store.enroll(np.random.default_rng(0).normal(size=(20, 64)), list(range(20)))
        whole = store.snapshot("whole")

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(Disk, "copy", full)
        with pytest.raises(CannotWriteError, match=r"snapshots/second: cannot be written \(No space left on device\)"):
            store.snapshot("second")
        with pytest.raises(CannotWriteError, match=r"again: cannot be written \(No space left on device\)"):
            SqliteStore.restore(whole, tmp_path / "again")
    assert [path.name for path in whole.parent.iterdir()] == ["whole"]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
