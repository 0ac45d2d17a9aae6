"""Reader: everything that is read from a home, over one question asked in a transaction."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from holue.errors import CorruptStoreError
from holue.store.sqlite.home import Home
from holue.store.sqlite.reading import read_receipts, read_rows, read_sample, read_view
from holue.store.values import Change, Float32Array, Int64Array, Operation, Receipt, Sample, Subject, SubjectId
from holue.store.view import View

T = TypeVar("T")


class Reader(ABC):
    """The reading half of a store whose versions are in a home: its own directory, or a local copy."""

    _serve = False  # leave out what is damaged

    @abstractmethod
    def _read(self, question: Callable[[Home], T]) -> T:
        """Ask a question of the home in one transaction."""

    @property
    def version(self) -> int:
        """The newest version; in a reading process too."""
        return self._read(lambda home: home.tables.last_version())

    def refresh(self) -> int:
        """The newest version: every question reads the database, so there is nothing to follow."""
        return self.version

    def at(self, version: int | None = None) -> View:
        """The gallery as it was in a version; the newest by default."""
        return self._read(lambda home: read_view(home, version, self._read, serve=self._serve))

    def subject(self, subject: SubjectId) -> Subject | None:
        """The subject enrolled under an id."""
        return self._read(lambda home: home.tables.known([subject])).get(subject)

    def subjects(self, after: int = 0, limit: int = 1000) -> list[Subject]:
        """Enrolled subjects in ascending order of their numbers, a page at a time."""
        return self._read(lambda home: home.tables.page(after, limit))

    def samples(self, subject: SubjectId) -> list[Sample]:
        """The samples of an enrolled subject, as they were given."""

        def read(home: Home) -> list[Sample]:
            known = home.tables.known([subject])
            numbers = home.tables.samples_of(known[subject].number) if known else []
            return read_sample(home, numbers)

        return self._read(read)

    def sample_counts(self, numbers: Sequence[int]) -> list[int]:
        """How many samples each of some subjects has, by their numbers; nothing of the samples is read."""
        found = self._read(lambda home: home.tables.sample_counts(numbers))
        return [found.get(number, 0) for number in numbers]

    def sample_numbers(self, subjects: Sequence[SubjectId]) -> dict[SubjectId, list[int]]:
        """The numbers, ascending, of the samples of those subjects that are enrolled; no embedding is read."""
        return self._read(lambda home: home.tables.samples_of_all(subjects))

    def embeddings(self, subjects: Sequence[SubjectId]) -> dict[SubjectId, tuple[Int64Array, Float32Array]]:
        """The numbers, ascending, and embeddings of the samples of those subjects that are enrolled, read at once."""

        def read(home: Home) -> dict[SubjectId, tuple[Int64Array, Float32Array]]:
            numbers = {
                subject: np.array(own, np.int64) for subject, own in home.tables.samples_of_all(subjects).items()
            }
            if not numbers:
                return {}
            wanted = np.sort(np.concatenate(list(numbers.values())))
            rows = read_rows(home, wanted)
            return {subject: (own, rows[np.searchsorted(wanted, own)]) for subject, own in numbers.items()}

        return self._read(read)

    def changes(self, since: int) -> list[Change]:
        """The changes after a version, oldest first."""
        return self._read(lambda home: home.tables.changes(since))

    def artifact(self, name: str) -> bytes | None:
        """A named artifact, for instance a calibration."""
        rows = self._read(lambda home: home.database.run("SELECT data, sha256 FROM artifact WHERE name = ?", [name]))
        if not rows:
            return None
        if hashlib.sha256(rows[0][0]).hexdigest() != rows[0][1]:
            raise CorruptStoreError(
                f"artifact {name!r} has changed since it was stored (checksum differs); store it again"
            )
        return bytes(rows[0][0])

    def receipts(self) -> list[Receipt]:
        """The receipts of all erasures."""
        return self._read(read_receipts)

    def operations(self, after: int = 0, limit: int | None = None) -> list[Operation]:
        """The operations log: erasures, snapshots, compactions and artifacts; changes have a log of their own."""
        sql = "SELECT number, time, verb, by, detail FROM operation WHERE number > ? ORDER BY number LIMIT ?"
        rows = self._read(lambda home: home.database.run(sql, [after, -1 if limit is None else limit]))
        return [Operation(number, time, verb, who, json.loads(detail)) for number, time, verb, who, detail in rows]
