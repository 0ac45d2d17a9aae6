"""LiveGallery: an open gallery that many ask and one changes; what it acknowledges is kept."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar, cast

from holue.errors import CorruptStoreError
from holue.gallery.gallery import Gallery
from holue.live.calibration.calibrations import CalibrationEntry, Calibrations, Source, StoredCalibration
from holue.live.calibration.certifying import certified
from holue.live.calibration.expected_errors import ExpectedErrors
from holue.live.calibration.learning import learn, made_from
from holue.live.calibration.own_samples import audited, left_out
from holue.live.calibration.preview import CalibrationPreview, preview_left_out, preview_probes
from holue.live.clustered import Joining
from holue.live.follower import Follower
from holue.live.kept_settings import keep_changed, settings_of
from holue.live.missing import Missing
from holue.live.protection import ProtectedStore, rotation_of
from holue.live.status import LiveStatus
from holue.live.template_cache import TemplateCache
from holue.live.templates import built, check_weights
from holue.live.version import GalleryVersion
from holue.recognition.answer.identifications import Identifications
from holue.recognition.audit.audit import GalleryAudit
from holue.recognition.calibration.fingerprint import Fingerprints
from holue.recognition.calibration.leave_one_out import LeftOutProbes
from holue.recognition.state.state_cell import StateCell
from holue.store.batch import check_model
from holue.store.closing import Closing
from holue.store.protocol import Store
from holue.store.values import Change, Enrolled, Problem, Receipt, Sample, Subject, SubjectId, several

T = TypeVar("T")


class LiveGallery(Closing):
    """Made by :func:`holue.open`; a context manager.

    A change is durable in the store first; then the new version becomes visible in one assignment. Readers never wait and never
    see half a change. Any number of threads may use one object; other processes open their own with ``read_only=True``.

    >>> import holue
    >>> with holue.open(":memory:", dim=4, method="galue", threshold=0.8) as gallery:
    ...     enrolled = gallery.enroll([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]], ["ann", "bob", "dan"])
    ...     removed = gallery.remove(["dan"])
    ...     answers = gallery.identify([[0.9, 0.1, 0, 0], [0, 0, 0, 1]])
    ...     answers.subject, gallery.version
    (array(['ann', UNKNOWN], dtype=object), 2)
    >>> gallery
    LiveGallery(2 subjects, d=4, version 2, not calibrated)
    """

    def __init__(
        self,
        store: Store,
        given: dict[str, Any],
        *,
        cache: TemplateCache,
        read_only: bool,
        cluster: Joining | None = None,
    ) -> None:
        self.rotation = rotation_of(store)
        self.store: Store = store if self.rotation is None else cast(Store, ProtectedStore(store, self.rotation))
        self.read_only = read_only
        self._given, self.settings = given, settings_of(store, given)
        self._cell = StateCell()
        self._calibrations = Calibrations(store)
        self._learned_from: dict[int, Fingerprints | None] = {}  # of the calibrations that this process made
        self._cache = cache
        self._lock = threading.Lock()
        self._follower = Follower(store, self.settings.weighting, self._cache)
        self._closed = False
        self._unreadable: CorruptStoreError | None = None
        version, gallery = self._follower.start(write=not read_only)
        self.clustered = None if cluster is None else cluster(self.settings.search)
        self._current = self._version_of(version, gallery, self._newest_calibration(None))

    def close(self) -> None:
        """Let another writer in; everything acknowledged is kept already."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if not self.read_only:
                    self._follower.keep_templates(self._current.version, self._current.gallery)
            finally:
                if self.clustered is not None:
                    self.clustered.close()
                self.store.close()

    # Reading

    def __len__(self) -> int:
        return len(self._current)

    def __repr__(self) -> str:
        calibration = self._current.calibration
        calibrated = "not calibrated" if calibration is None else f"calibration {calibration}"
        return f"LiveGallery({len(self)} subjects, d={self.dim}, version {self.version}, {calibrated})"

    @property
    def dim(self) -> int:
        """The number of coordinates of an embedding."""
        return self.store.dim

    @property
    def model(self) -> str | None:
        """The fingerprint of the embedding model, as given at creation."""
        return self.store.model

    @property
    def current(self) -> GalleryVersion:
        """The version that answers now; it stays as it is, whatever changes."""
        if self._unreadable is not None:
            raise self._unreadable
        return self._current

    @property
    def version(self) -> int:
        """The number of the version that answers now."""
        return self._current.version

    def subjects(self, after: int = 0, limit: int = 1000) -> list[Subject]:
        """Enrolled subjects in ascending order of their numbers, a page at a time."""
        return self.store.subjects(after, limit)

    def subject(self, subject: SubjectId) -> Subject | None:
        """The subject enrolled under an id."""
        return self.store.subject(subject)

    def samples(self, subject: SubjectId) -> list[Sample]:
        """The samples of an enrolled subject, as they were given; in a protected gallery up to rounding."""
        samples, rotation = self.store.samples(subject), self.rotation
        if rotation is None:
            return samples
        return [replace(one, embedding=rotation.turned_back(one.embedding[None])[0]) for one in samples]

    def changes(self, since: int = 0) -> list[Change]:
        """The changes after a version, oldest first."""
        return self.store.changes(since)

    def calibrations(self) -> list[CalibrationEntry]:
        """All calibrations that are kept, oldest first, each with its state."""
        return self._calibrations.entries()

    def calibrated_with(self, number: int) -> GalleryVersion:
        """The gallery as it is now, as it would answer with another calibration."""
        now = self._current
        loaded = self._calibrations.load(self._calibrations.get(number), self.settings)
        return GalleryVersion.of(now.version, self.settings, now.gallery, loaded, rotation=self.rotation)

    def preview(
        self, number: int, X: object = None, y: object = None, concentration: object = None
    ) -> CalibrationPreview:
        """What would change if a calibration answered: the threshold, the errors, and the decisions about probes ``X``.

        Without probes it asks about the enrolled samples, each left out in turn.
        """
        now, candidate = self._current, self.calibrated_with(number)
        if X is None:
            with self._joining():
                return preview_left_out(candidate, now, self._left_out(now))
        return preview_probes(candidate, now, X, y, concentration)

    def identify(
        self, X: object, concentration: object = None, *, top_k: int = 5, model: str | None = None
    ) -> Identifications:
        """The whole answer about each probe: subject, decision, probabilities, candidates and the reason for doubt."""
        self.check_model(model)
        return self.current.identify(X, concentration, top_k=top_k)

    def at(self, version: int, *, calibration: int | None = None) -> GalleryVersion:
        """The gallery as it was, with the calibration it had then (or the one with a number), to answer again as it did."""
        view = self.store.at(version)
        entry = self._calibrations.chosen(version, calibration)
        loaded = None if entry is None else self._calibrations.load(entry, self.settings)
        gallery, missing = built(view, self.settings.weighting), Missing.of(self.store, version)
        return GalleryVersion.of(version, self.settings, gallery, loaded, missing=missing, rotation=self.rotation)

    def refresh(self) -> int:
        """Follow what another process has written since; returns the version that answers now."""
        with self._lock:
            self.store.refresh()
            kept = settings_of(self.store, self._given)
            if kept != self.settings:
                now, self.settings = self._current, kept
                self._current = self._version_of(now.version, now.gallery, now.calibrated)
            self._follow(self._newest_calibration(self._current.calibrated))
            return self._current.version

    def expected_errors(self) -> ExpectedErrors:
        """What the enrolled samples, each left out in turn, say about the errors of answers now."""
        now = self._current
        with self._joining():
            return ExpectedErrors.of(now, self._left_out(now))

    def audit(self, **options: Any) -> GalleryAudit:
        """What is wrong with the gallery: see :func:`holue.recognition.audit.audit.audit_gallery`, whose options it takes.

        Samples are named by their numbers.
        """
        with self._joining():
            return audited(self.store, self._current.version, {"target_fpir": self.settings.target_fpir, **options})

    def verify(self) -> list[Problem]:
        """Read everything and compare checksums; the damage found."""
        return [*self.store.verify(), *self._cache.problems()]

    def status(self) -> LiveStatus:
        """The gallery in numbers."""
        now = LiveStatus.of(self.store.status(), self._current, read_only=self.read_only)
        return now if self._unreadable is None else replace(now, doubts=(str(self._unreadable), *now.doubts))

    # Changing

    def enroll(self, X: object, ids: Iterable[SubjectId], **fields: Any) -> Enrolled:
        """Enrol new subjects, all or nothing; the fields are those of :meth:`holue.store.protocol.Store.enroll`."""
        check_weights(self.settings.weighting, fields)
        return self._followed(self.store.enroll(X, ids, **fields))

    def add_samples(self, X: object, ids: Iterable[SubjectId], **fields: Any) -> Enrolled:
        """Give enrolled subjects more samples, all or nothing."""
        check_weights(self.settings.weighting, fields)
        return self._followed(self.store.add_samples(X, ids, **fields))

    def replace(self, X: object, ids: Iterable[SubjectId], **fields: Any) -> Enrolled:
        """Give enrolled subjects new samples in place of all they had."""
        check_weights(self.settings.weighting, fields)
        return self._followed(self.store.replace(X, ids, **fields))

    def remove(self, ids: SubjectId | Iterable[SubjectId], *, by: str | None = None) -> int:
        """One subject or several leave with their samples; :meth:`undo` brings them back until erased. Returns the version."""
        return self._followed(self.store.remove(several(ids), by=by))

    def remove_samples(self, samples: Iterable[int], *, by: str | None = None) -> int:
        """Samples leave, by number; each subject concerned keeps at least one."""
        return self._followed(self.store.remove_samples(samples, by=by))

    def rename(self, old: SubjectId, new: SubjectId, *, by: str | None = None) -> int:
        """A subject gets another id and keeps its number."""
        return self._followed(self.store.rename(old, new, by=by))

    def update(self, ids: SubjectId | Iterable[SubjectId], **fields: Any) -> int:
        """Change what is said about subjects; the fields are those of :meth:`holue.store.protocol.Store.update`."""
        return self._followed(self.store.update(several(ids), **fields))

    def merge(self, ids: SubjectId | Iterable[SubjectId], *, into: SubjectId, by: str | None = None) -> int:
        """Subjects turn out to be one: all samples go to ``into``, and the others leave."""
        return self._followed(self.store.merge(several(ids), into=into, by=by))

    def split(self, old: SubjectId, samples: Iterable[int], *, new: SubjectId, by: str | None = None) -> int:
        """A subject turns out to be two: some samples, by number, go to a new subject."""
        return self._followed(self.store.split(old, samples, new=new, by=by))

    def undo(self, version: int | None = None, *, by: str | None = None) -> int:
        """Put back everything that a change touched, the last one by default."""
        return self._followed(self.store.undo(version, by=by))

    def erase(
        self, ids: SubjectId | Iterable[SubjectId] = (), *, numbers: Iterable[int] = (), by: str | None = None
    ) -> Receipt:
        """Erase subjects from every file of the home, snapshots and the template cache included; nothing brings them back."""
        with self._follower.erasing():
            receipt = self.store.erase(several(ids), numbers=numbers, by=by)
        return self._erased(receipt)

    def purge(
        self, *, now: float | None = None, dry_run: bool = False, by: str | None = None
    ) -> tuple[list[int], Receipt | None]:
        """Erase the subjects whose ``retain_until`` has come; a dry run only lists their numbers."""
        if dry_run:
            return self.store.purge(now=now, dry_run=True, by=by)
        with self._follower.erasing():
            numbers, receipt = self.store.purge(now=now, by=by)
        return numbers, None if receipt is None else self._erased(receipt)

    def change_settings(self, *, by: str | None = None, **given: Any) -> None:
        """Keep other settings, durably: those of the FPIR from the next calibration on, the rest of ``CHANGEABLE`` at once."""
        with self._lock:
            keep_changed(self.store, self.settings, given, by=by)
            self._given, self.settings = {}, settings_of(self.store, {})
            now = self._current
            self._current = self._version_of(now.version, now.gallery, now.calibrated)

    def snapshot(self, name: str | None = None, *, by: str | None = None) -> object:
        """A copy of the store as it is now, calibrations included; writing may go on meanwhile."""
        return self.store.snapshot(name, by=by)

    def compact(self, *, forget_before: int | None = None, by: str | None = None) -> None:
        """Merge small segments and keep the templates for the next opening; ``forget_before`` gives up older versions."""
        self.store.compact(forget_before=forget_before, by=by)
        now = self._current
        self._follower.keep_templates(now.version, now.gallery, always=True)

    def calibrate(
        self, X: object = None, y: object = None, concentration: object = None, *,
        gallery: Gallery | tuple[object, ...] | None = None, model: str | None = None, by: str | None = None,
        activate: bool = True, source: Source | None = None,
    ) -> CalibrationEntry:  # fmt: skip
        """Set the operating point and learn how far to trust answers, durably; changes may go on meanwhile.

        Without arguments it learns from the enrolled samples, each left out in turn. Probes ``X`` of the subjects ``y`` are as in
        :meth:`holue.recognition.recognizer.OpenSetRecognizer.calibrate`; ``source="reviews"`` says that people decided whom they
        show. With ``activate=False`` it is a candidate, which answers nothing until :meth:`activate`.
        """
        self.check_model(model)
        learned_from, now = made_from(X, source), self._current
        with self._joining():
            state, said = learn(now, self._left_out, X, y, concentration, gallery, self.dim)
        with self._lock:
            since = self._current.version if activate else None
            stored = self._calibrations.keep(
                state, self.settings, made_at=now.version, since=since, by=by, source=learned_from
            )
            # In memory only: a fingerprint is a hash of a probe, and must not outlive the erasure of its subject.
            self._learned_from[stored.entry.number] = state.calibration_fingerprints
            if activate:
                self._unreadable = None
                self._follow(stored)
        for each in said:
            warnings.warn(each, stacklevel=2)
        return stored.entry

    def certify(
        self, number: int, X: object, y: object, concentration: object = None, *, by: str | None = None, **wanted: Any
    ) -> CalibrationEntry:
        """Certify a risk of a calibration on labelled probes it was not made from; the result is a candidate, durably.

        ``wanted`` is what :class:`holue.recognition.risk.controller.RiskController` and its ``fit`` take. Once it is active,
        answers under the certified quality are filtered. An error says how many more probes are needed where these do not do.
        """
        version, entry = self.calibrated_with(number), self._calibrations.get(number)
        state = certified(version, self._learned_from.get(number), X, y, concentration, **wanted)
        with self._lock:
            return self._calibrations.keep(
                state, self.settings, made_at=entry.made_at, since=None, by=by, source=entry.source
            ).entry

    def activate(self, number: int | None, *, by: str | None = None) -> CalibrationEntry | None:
        """From now on this calibration answers, a candidate or an older one; with None no calibration does. Durable."""
        with self._lock:
            entry = self._calibrations.activate(number, since=self._current.version, by=by)
            self._follow(None if entry is None else self._calibrations.load(entry, self.settings))
        return entry

    # Inside

    def _followed(self, result: T) -> T:
        """What a verb of the store returned, once its version is visible."""
        with self._lock:
            self._follow(self._current.calibrated)
        return result

    def _erased(self, receipt: Receipt) -> Receipt:
        self._followed(receipt)
        return receipt if self.clustered is None else self.clustered.erased(receipt)

    def _follow(self, calibration: StoredCalibration | None) -> None:
        now = self._current
        version, gallery = self._follower.follow(now.version, now.gallery)
        if version != now.version or calibration is not now.calibrated:
            self._current = self._version_of(version, gallery, calibration)

    def _version_of(
        self, version: int, gallery: Gallery | None, calibration: StoredCalibration | None
    ) -> GalleryVersion:
        missing = Missing.of(self.store, version)
        cell = self._cell if self.clustered is None else self.clustered.cell(version, gallery, self._cell)
        return GalleryVersion.of(version, self.settings, gallery, calibration, cell, missing, self.rotation)

    def _newest_calibration(self, known: StoredCalibration | None) -> StoredCalibration | None:
        entry = self._calibrations.active()
        if entry is None or (known is not None and known.entry.number == entry.number):
            return known if entry is not None else None
        self._unreadable = None
        try:
            return self._calibrations.load(entry, self.settings)
        except CorruptStoreError as error:  # the next calibration takes its place; until then nobody is answered
            self._unreadable = error
            return None

    def _joining(self) -> AbstractContextManager[None]:
        """Where subjects are compared with each other: here, or on the nodes of a cluster."""
        return nullcontext() if self.clustered is None else self.clustered.joining()

    def _left_out(self, now: GalleryVersion) -> LeftOutProbes:
        return left_out(self.store, self.settings, now)

    def check_model(self, model: str | None) -> None:
        """Refuse embeddings of another model than the gallery was made for; None says nothing."""
        check_model(model, self.model)
