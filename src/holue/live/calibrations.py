"""Calibrations: what a gallery was calibrated to, kept in its store under numbers, so that an old answer can be computed again.

Each is an artifact of its own, an ``.npz`` of plain arrays with a JSON head; a list names them. Neither holds an embedding, a
hash of one, or a name: erasure has nothing to look for in them.
"""

from __future__ import annotations

import io
import json
import time as clock
import zipfile
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from holue.errors import CorruptStoreError, InvalidParameterError
from holue.gallery.gallery import Gallery
from holue.recognition.saved.recognizer_folder import MALFORMED, learned_fields, learned_parts
from holue.recognition.settings import Settings
from holue.recognition.state.lineage import Lineage
from holue.recognition.state.state import State
from holue.store.protocol import Store

LIST = "calibrations"
HEAD = "head"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class CalibrationEntry:
    """A line of the list: ``made_at`` is the version it was learned from, ``since`` the first version it answered in."""

    number: int
    made_at: int
    since: int
    time: float
    model: str | None
    source: str

    @property
    def artifact(self) -> str:
        """The name of the artifact that holds it."""
        return f"calibration-{self.number}"


@dataclass(frozen=True, eq=False)
class StoredCalibration:
    """One calibration, ready for a gallery of any size."""

    entry: CalibrationEntry
    learned: dict[str, Any]  # fields of a state

    def state(self, gallery: Gallery, settings: Settings) -> State:
        """What answers with this calibration and a gallery; the operating point follows the gallery's size."""
        return State(gallery, self.entry.model, **self.learned).with_gallery(gallery, settings.hold)


class Calibrations:
    """The calibrations in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def entries(self) -> list[CalibrationEntry]:
        """All of them, oldest first."""
        data = self._store.artifact(LIST)
        return [] if data is None else [CalibrationEntry(**entry) for entry in json.loads(data)]

    def load(self, entry: CalibrationEntry, settings: Settings) -> StoredCalibration:
        """Read a calibration, every part checked."""
        data = self._store.artifact(entry.artifact)
        if data is None:
            raise CorruptStoreError(f"artifact {entry.artifact!r} is missing; calibrate again")
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            head = json.loads(arrays.pop(HEAD).tobytes())
            if head["format"] > FORMAT_VERSION:
                raise CorruptStoreError(
                    f"artifact {entry.artifact!r} has format {head['format']}, this holue reads up to {FORMAT_VERSION}; "
                    "upgrade holue"
                )
            learned = learned_fields(head["content"], arrays, settings)
        except (*MALFORMED, OSError, EOFError, zipfile.BadZipFile) as error:
            raise CorruptStoreError(
                f"artifact {entry.artifact!r} is not a calibration ({error}); calibrate again"
            ) from error
        return StoredCalibration(entry, {**learned, "lineage": Lineage()})

    def keep(self, state: State, *, made_at: int, since: int, source: str, by: str | None) -> CalibrationEntry:
        """Store what a state has learned, durably: the calibration first, then the list that names it."""
        entries = self.entries()
        number = 1 + max((entry.number for entry in entries), default=0)
        entry = CalibrationEntry(number, made_at, since, clock.time(), self._store.model, source)
        # A fingerprint is a hash of a sample; it would outlive the erasure of that sample.
        content, arrays = learned_parts(replace(state, calibration_fingerprints=None))
        head = json.dumps({"format": FORMAT_VERSION, "content": content}, allow_nan=False).encode()
        stream = io.BytesIO()
        np.savez(stream, allow_pickle=False, **{HEAD: np.frombuffer(head, np.uint8)}, **arrays)
        self._store.put_artifact(entry.artifact, stream.getvalue(), by=by)
        listed = json.dumps([asdict(each) for each in [*entries, entry]], allow_nan=False)
        self._store.put_artifact(LIST, listed.encode(), by=by)
        return entry

    def chosen(self, version: int, number: int | None) -> CalibrationEntry | None:
        """The calibration with a number, or else the last one that answered in a version."""
        entries = self.entries()
        if number is None:
            return next((entry for entry in reversed(entries) if entry.since <= version), None)
        for entry in entries:
            if entry.number == number:
                return entry
        known = ", ".join(str(entry.number) for entry in entries) or "none"
        raise InvalidParameterError(f"there is no calibration {number}; this gallery has {known}")
