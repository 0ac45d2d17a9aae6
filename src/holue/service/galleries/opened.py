"""Opened: a living gallery with what the service needs beside it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holue.errors import CorruptStoreError
from holue.gallery.embeddings import FloatArray
from holue.live.calibration.expected_errors import ExpectedErrors
from holue.live.live_gallery import LiveGallery
from holue.live.protection import turned_back
from holue.live.version import GalleryVersion
from holue.recognition.audit.audit import GalleryAudit
from holue.service.galleries.batching import Batcher
from holue.service.galleries.following import Following
from holue.service.http.etags import tag_of
from holue.service.http.problems import not_found
from holue.service.ledger.audit.audit_log import AuditLog
from holue.service.ledger.ledger import Ledger
from holue.store.values import Int64Array, Subject, SubjectId

Matched = tuple[Int64Array, FloatArray]
"""Numbers of samples, and their unit directions where there are several."""
NO_ROWS: FloatArray = np.empty((0, 0), np.float32)
KEPT = 4096
"""Subjects of one version whose samples are kept in memory."""


@dataclass(frozen=True, eq=False)
class LastAudit:
    """What an audit found, and the version it looked at."""

    version: int
    found: GalleryAudit


@dataclass(eq=False)
class Opened:
    """One gallery of the service."""

    name: str
    live: LiveGallery
    batcher: Batcher
    ledger: Ledger
    review_share: float = 0.0  # the share of the given answers that people look at
    keeps_strangers: bool = False
    following: Following | None = None  # where other processes write to the same gallery
    audit: LastAudit | None = None  # since the service was started
    expected: ExpectedErrors | None = None  # the last that was measured
    changing: threading.RLock = field(default_factory=threading.RLock)
    """Held while a precondition is checked and the change is made, so that no other request comes between."""
    _samples: weakref.WeakKeyDictionary[GalleryVersion, dict[SubjectId, Matched]] = field(
        default_factory=weakref.WeakKeyDictionary
    )

    @property
    def log(self) -> AuditLog:
        """Who asked what of this gallery."""
        return self.ledger.audit_log

    def run_audit(self, **options: Any) -> LastAudit:
        """Audit the gallery as it is now, and keep what was found."""
        version = self.live.version
        self.audit = LastAudit(version, self.live.audit(**options))
        return self.audit

    def subject_id(self, text: str) -> SubjectId:
        """The id that a path names: a number where the gallery's ids are numbers."""
        gallery = self.live.current.gallery
        if gallery is not None and gallery.subjects.dtype.kind in "iu" and text.lstrip("-").isdecimal():
            return int(text) if len(text) < 20 else text
        return text

    def subject(self, text: str) -> Subject:
        """The subject that a path names, or a problem."""
        wanted = self.subject_id(text)
        found = self.live.subject(wanted) if is_text(text) else None
        if found is None:
            raise not_found("subject", text, "enrolled subjects are listed by GET …/subjects")
        return found

    def numbered(self, number: int) -> Subject | None:
        """The enrolled subject with a number."""
        found = next(iter(self.live.subjects(number - 1, 1)), None)
        return found if found is not None and found.number == number else None

    def id_of(self, number: int) -> SubjectId | None:
        """The id that a subject has now, by its number."""
        found = self.numbered(number)
        return None if found is None else found.id

    def number_of(self, subject: SubjectId) -> int | None:
        """The number of the subject that has an id now."""
        found = self.live.subject(subject)
        return None if found is None else found.number

    def tag(self, subject: Subject) -> str:
        """What a subject is now, in a word that changes with it: for ETag and If-Match."""
        numbers = [sample.number for sample in self.live.samples(subject.id)]
        said = (subject.metadata, subject.retain_until, subject.consent, subject.purpose)
        return tag_of((self.name, subject.number, subject.id, *said, numbers))

    def best_sample(self, version: GalleryVersion, subject: SubjectId, probe: FloatArray) -> int | None:
        """The enrolled sample of a subject that is closest to a unit probe; None where the subject has left since."""
        return self.best_samples(version, [[subject]], probe[None])[0][0]

    def best_samples(
        self, version: GalleryVersion, subjects: Sequence[Sequence[SubjectId]], probes: FloatArray
    ) -> list[list[int | None]]:
        """For each of the subjects of each unit probe, its enrolled sample that is closest to the probe."""
        known = self._samples.setdefault(version, {})
        missing = [one for one in dict.fromkeys(one for own in subjects for one in own) if one not in known]
        if len(known) + len(missing) > KEPT:
            known = self._samples[version] = {one: known[one] for own in subjects for one in own if one in known}
        known |= self._read_samples(missing)
        found: list[list[int | None]] = []
        for own, probe in zip(subjects, probes):
            narrow = probe.astype(np.float32, copy=False)
            found.append([_closest(known.get(subject), narrow) for subject in own])
        return found

    def _read_samples(self, subjects: Sequence[SubjectId]) -> dict[SubjectId, Matched]:
        """The samples of those subjects that are enrolled; of a single one only the number, since none can be closer."""
        if not subjects:
            return {}
        numbers = self.live.store.sample_numbers(subjects)
        single = {subject: (np.array(own, np.int64), NO_ROWS) for subject, own in numbers.items() if len(own) == 1}
        return single | self._read_rows([subject for subject, own in numbers.items() if len(own) > 1])

    def _read_rows(self, subjects: Sequence[SubjectId]) -> dict[SubjectId, Matched]:
        """The samples of those subjects whose samples can be read."""
        if not subjects:
            return {}
        try:
            found = self.live.store.embeddings(subjects)
        except CorruptStoreError:  # some samples of a damaged gallery cannot be read: find the others one by one
            if len(subjects) == 1:
                return {}
            return {one: own for subject in subjects for one, own in self._read_rows([subject]).items()}
        return {
            subject: (numbers, _unit(turned_back(rows, self.live.rotation)))
            for subject, (numbers, rows) in found.items()
        }

    def close(self) -> None:
        """Finish the scan under way, then close the gallery and the ledger."""
        if self.following is not None:
            self.following.stop()
        self.batcher.close()
        self.live.close()
        self.ledger.close()


def _closest(matched: Matched | None, probe: FloatArray) -> int | None:
    if matched is None:
        return None
    numbers, rows = matched
    return int(numbers[0 if len(numbers) == 1 else int(np.argmax(rows @ probe))])


def _unit(rows: FloatArray) -> FloatArray:
    directions: FloatArray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return directions


def is_text(text: str) -> bool:
    """Whether a text can be a subject's id: valid Unicode without NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
