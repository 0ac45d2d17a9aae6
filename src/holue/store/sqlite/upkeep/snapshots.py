"""Snapshots: whole copies of a home at one version, in its ``snapshots`` directory, where erasure finds them."""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path

from holue.artifact.whole import cannot_write
from holue.errors import InvalidParameterError, StoreError
from holue.store.sqlite.database import connect_sqlite
from holue.store.sqlite.files.block import block_bytes
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.home import DATABASE, SEGMENTS, SNAPSHOTS, Home, refuse

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def names(home: Path) -> tuple[str, ...]:
    """The names of a home's snapshots."""
    folder = home / SNAPSHOTS
    return (
        tuple(sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")))
        if folder.is_dir()
        else ()
    )


def take(home: Home, name: str) -> Path:
    """Copy the newest version; it appears under its name once it is whole and on disk."""
    if not _NAME.fullmatch(name):
        raise InvalidParameterError(f"a snapshot's name is letters, digits, dots, dashes and underscores, got {name!r}")
    folder = home.path / SNAPSHOTS
    target = folder / name
    if target.exists():
        raise StoreError(f"snapshot {name!r} exists already; choose another name")
    staging = folder / f".{name}.{uuid.uuid4().hex[:8]}"
    with cannot_write(target):
        try:
            (staging / SEGMENTS).mkdir(parents=True)
            (staging / SNAPSHOTS).mkdir()
            _copy_database(home, staging / DATABASE)
            copied = Home(staging, "ro", home.disk, home.connect)
            ends: dict[int, int] = {}
            for entry in copied.ranges.all():
                if entry.file is not None:
                    ends[entry.file] = max(ends.get(entry.file, 0), entry.offset + block_bytes(entry.n, home.dim))
            copied.close()
            for file, end in ends.items():
                home.disk.copy(home.ranges.path(file), staging / SEGMENTS / home.ranges.path(file).name, end)
            _sync(staging, home.disk)
            home.disk.rename(staging, target)
            home.disk.sync_directory(folder)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
    return target


def restore(snapshot: Path, target: Path, disk: Disk) -> None:
    """A new home from a snapshot."""
    if target.exists() and any(target.iterdir()):
        raise StoreError(f"{target} exists already and is not empty; restore into a new directory")
    source = Home(snapshot, "ro", disk, connect_sqlite)
    problems = source.cheap_problems()
    source.close()
    if problems:
        raise refuse(snapshot, problems)
    staging = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
    with cannot_write(target):
        try:
            (staging / SEGMENTS).mkdir(parents=True)
            (staging / SNAPSHOTS).mkdir()
            _copy_database(source, staging / DATABASE)  # with what is in its write-ahead log
            for path in (snapshot / SEGMENTS).iterdir():
                disk.copy(path, staging / SEGMENTS / path.name)
            database = connect_sqlite(staging / DATABASE, "rw")
            database.execute("PRAGMA journal_mode = WAL").fetchall()
            database.close()
            _sync(staging, disk)
            disk.rename(staging, target)
            disk.sync_directory(target.parent)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise


def _copy_database(home: Home, target: Path) -> None:
    connection = home.connect(home.path / DATABASE, "ro")
    try:
        list(connection.execute("VACUUM INTO ?", (str(target),)))
    finally:
        connection.close()


def _sync(folder: Path, disk: Disk) -> None:
    for path in (*folder.rglob("*"), folder):
        if path.is_dir():
            disk.sync_directory(path)
        else:
            disk.sync(path)
