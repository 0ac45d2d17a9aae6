"""Calibrations: what a gallery was calibrated to, kept in its store under numbers, so that an old answer can be computed again.

Each is an artifact of its own, an ``.npz`` of plain arrays with a JSON head; a list names them and says which one answered since
when. Neither holds an embedding, a hash of one, or a name: erasure has nothing to look for in them.
"""

from __future__ import annotations

import io
import json
import time as clock
import zipfile
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from holue.errors import ConflictError, CorruptStoreError, InvalidParameterError
from holue.gallery.gallery import Gallery
from holue.recognition.saved.recognizer_folder import MALFORMED, learned_fields, learned_parts
from holue.recognition.settings import Settings
from holue.recognition.state.lineage import Lineage
from holue.recognition.state.state import State
from holue.store.protocol import Store

LIST = "calibrations"
HEAD = "head"
ATTEMPTS = 5
"""Times that a candidate is written before the conflict is told; each time another process was faster."""
FORMAT_VERSION = 1
CalibrationState = Literal["candidate", "active", "superseded"]
Source = Literal["probes", "leave-one-out", "reviews"]


@dataclass(frozen=True)
class CalibrationEntry:
    """A calibration in the list.

    A ``candidate`` has never answered, the ``active`` one answers now, a ``superseded`` one has answered before. ``made_at`` is
    the version it was learned from, ``since`` the first version it answered in (None for a candidate).
    """

    number: int
    made_at: int
    since: int | None
    time: float
    model: str | None
    source: Source
    state: CalibrationState

    @property
    def artifact(self) -> str:
        """The name of the artifact that holds it."""
        return f"calibration-{self.number}"


@dataclass(frozen=True)
class Activation:
    """Since a version a calibration answered, or none (``number`` is None); later ones come later in the list."""

    number: int | None
    since: int
    time: float
    by: str | None


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
        made, activations = self._listed()
        return [_entry(fields, activations) for fields in made]

    def activations(self) -> list[Activation]:
        """Which calibration answered since when, oldest first."""
        return self._listed()[1]

    def active(self) -> CalibrationEntry | None:
        """The one that answers now."""
        return next((entry for entry in self.entries() if entry.state == "active"), None)

    def get(self, number: int) -> CalibrationEntry:
        """The calibration with a number."""
        entries = self.entries()
        for entry in entries:
            if entry.number == number:
                return entry
        known = ", ".join(str(entry.number) for entry in entries) or "none"
        raise InvalidParameterError(f"there is no calibration {number}; this gallery has {known}")

    def chosen(self, version: int, number: int | None) -> CalibrationEntry | None:
        """The calibration with a number, or else the last one that answered in a version."""
        if number is not None:
            return self.get(number)
        answered = [activation for activation in self.activations() if activation.since <= version]
        return None if not answered or answered[-1].number is None else self.get(answered[-1].number)

    def load(self, entry: CalibrationEntry, settings: Settings) -> StoredCalibration:
        """Read a calibration, every part checked."""
        data = self._store.artifact(entry.artifact)
        if data is None:
            raise CorruptStoreError(f"artifact {entry.artifact!r} is missing; calibrate again")
        return self._read(entry, data, settings)

    def _read(self, entry: CalibrationEntry, data: bytes, settings: Settings) -> StoredCalibration:
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

    def keep(
        self, state: State, settings: Settings, *, made_at: int, since: int | None, source: Source, by: str | None
    ) -> StoredCalibration:
        """Store what a state has learned, durably, together with the list that names it.

        It answers from version ``since`` on, and stays a candidate where that is None. The result is read from the bytes that are
        stored, so that this process answers with the same bits as the next one, and bytes that cannot be read are not stored.
        Where another process was faster, a candidate gets the next number, and one that was to answer is refused.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return self._keep(state, settings, made_at, since, source, by)
            except ConflictError:
                if since is not None:
                    raise
        return self._keep(state, settings, made_at, since, source, by)

    def _keep(
        self, state: State, settings: Settings, made_at: int, since: int | None, source: Source, by: str | None
    ) -> StoredCalibration:
        before = self._store.artifact(LIST)
        made, activations = _read_list(before)
        number = 1 + max((fields["number"] for fields in made), default=0)
        time = clock.time()
        fields = {"number": number, "made_at": made_at, "time": time, "model": self._store.model, "source": source}
        if since is not None:
            activations = [*activations, Activation(number, since, time, by)]
        entry = _entry(fields, activations)
        # A fingerprint is a hash of a sample; it would outlive the erasure of that sample.
        content, arrays = learned_parts(replace(state, calibration_fingerprints=None))
        head = json.dumps({"format": FORMAT_VERSION, "content": content}, allow_nan=False).encode()
        stream = io.BytesIO()
        np.savez(stream, allow_pickle=False, **{HEAD: np.frombuffer(head, np.uint8)}, **arrays)
        stored = self._read(entry, stream.getvalue(), settings)
        listed = _list([*made, fields], activations)
        self._write({entry.artifact: stream.getvalue(), LIST: listed}, before, by)
        return stored

    def activate(self, number: int | None, *, since: int, by: str | None) -> CalibrationEntry | None:
        """From version ``since`` on this calibration answers, or none; durable."""
        if number is not None:
            self.get(number)
        before = self._store.artifact(LIST)
        made, activations = _read_list(before)
        listed = _list(made, [*activations, Activation(number, since, clock.time(), by)])
        self._write({LIST: listed}, before, by)
        return None if number is None else self.get(number)

    def _write(self, artifacts: dict[str, bytes], before: bytes | None, by: str | None) -> None:
        """Compare and swap: what another process has written since ``before`` was read is never lost."""
        try:
            self._store.put_artifacts(artifacts, replaces={LIST: before}, by=by)
        except ConflictError as error:
            raise ConflictError(
                "another process has made or chosen a calibration at the same moment, and nothing was changed here; see "
                "which one answers now (calibrations lists them), then choose again"
            ) from error

    def _listed(self) -> tuple[list[dict[str, Any]], list[Activation]]:
        return _read_list(self._store.artifact(LIST))


def _read_list(data: bytes | None) -> tuple[list[dict[str, Any]], list[Activation]]:
    if data is None:
        return [], []
    content = json.loads(data)
    if isinstance(content, list):  # before a calibration had a state: each answered once it was made
        answered = [Activation(each["number"], each.pop("since"), each["time"], None) for each in content]
        return content, answered
    return content["calibrations"], [Activation(**fields) for fields in content["activations"]]


def _list(made: list[dict[str, Any]], activations: list[Activation]) -> bytes:
    content = {"calibrations": made, "activations": [asdict(one) for one in activations]}
    return json.dumps(content, allow_nan=False).encode()


def _entry(fields: dict[str, Any], activations: list[Activation]) -> CalibrationEntry:
    own = [activation.since for activation in activations if activation.number == fields["number"]]
    state: CalibrationState = "superseded" if own else "candidate"
    if own and activations[-1].number == fields["number"]:
        state = "active"
    return CalibrationEntry(**fields, since=min(own, default=None), state=state)
