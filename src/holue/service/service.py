"""Service: the galleries, keys and measures behind the routes."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from starlette.requests import Request

from holue.errors import StoreError
from holue.live.live_gallery import LiveGallery
from holue.service.galleries.batching import Batcher
from holue.service.galleries.embedder import Embedder, FileEmbedder
from holue.service.galleries.following import Following
from holue.service.galleries.galleries import Galleries
from holue.service.galleries.opened import Opened
from holue.service.galleries.probes import ProbeReader
from holue.service.http.access import Access, Asker
from holue.service.http.logs import current_request_id
from holue.service.http.long import LongWork
from holue.service.http.metrics import Metrics
from holue.service.ledger.audit.audit_chain import Event
from holue.service.ledger.audit.audit_log import AuditLog
from holue.service.ledger.audit.recovery import BEGUN, ERASE
from holue.service.ledger.idempotency import RUNNING, Idempotency
from holue.service.ledger.keys import NewKey
from holue.service.ledger.ledger import Ledger, erase_everywhere
from holue.service.ledger.sessions import Sessions
from holue.service.page.try_it import TryIt
from holue.service.settings import ServiceSettings
from holue.store.postgres.address import SCHEMES
from holue.store.values import Receipt, SubjectId

logger = logging.getLogger(__name__)


class Service:
    """Everything that is open while the service runs; made by :meth:`open`."""

    def __init__(self, settings: ServiceSettings, *, embedder: Embedder | None = None) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.embedder = embedder
        self.galleries = Galleries(settings.galleries, self._opened, damaged=settings.damaged, cluster=settings.cluster)
        self.first_key: NewKey | None = None
        self.ready = False
        self.long = LongWork()
        self.try_it: TryIt | None = None  # a screen of the demo

    def open(self) -> Self:
        """Open the galleries and the keys; the first key is made where there is none."""
        try:
            if self.embedder is None and self.settings.embedder is not None:
                self.embedder = FileEmbedder.open(self.settings.embedder, self.settings.limits)
            self.reader = ProbeReader(self.settings.limits, self.embedder)
            self.galleries.open_all()
            for opened in self.galleries:
                if not opened.live.read_only:
                    self._recover(opened.name, opened.live, opened.ledger, on_server=opened.following is not None)
            self.ledger = self._own_ledger()
            keys = self.ledger.keys if self.settings.keys else None
            self.first_key = None if keys is None else keys.first()
            self.access = Access(keys)
            self.sessions = Sessions(self.ledger.database, self.ledger.keys)
        except BaseException:
            self.galleries.close()
            raise
        self.ready = True
        return self

    def close(self) -> None:
        """Finish what runs and close everything; acknowledged changes are durable already."""
        self.ready = False
        self.access.close()
        self.galleries.close()
        self.ledger.close()

    @property
    def log(self) -> AuditLog:
        """The log of the service as a whole."""
        return self.ledger.audit_log

    def answers_of(self, gallery: str | None) -> Idempotency:
        """The answers that are kept for repeated requests: a gallery's, so that its erasures reach them."""
        return (self.ledger if gallery is None else self.galleries.get(gallery).ledger).idempotency

    def measure(self) -> bytes:
        """The metrics, with what is true now of each gallery."""
        for opened in self.galleries:
            now = opened.live.current
            self.metrics.subjects.labels(opened.name).set(len(now))
            self.metrics.version.labels(opened.name).set(now.version)
            self.metrics.doubts.labels(opened.name).set(len(now.doubts()))
            self.metrics.waiting.labels(opened.name).set(opened.batcher.waiting)
            if opened.live.clustered is not None:
                self.metrics.observe_cluster(opened.name, opened.live.clustered.cluster.health())
        return self.metrics.text()

    def record(self, asker: Asker, action: str, started: float, opened: Opened | None = None, **fields: Any) -> None:
        """One row of the audit log, of a gallery or of the service as a whole."""
        log = self.log if opened is None else opened.log
        event = Event(
            action, asker.actor, current_request_id(), started, time.time(),
            gallery=None if opened is None else opened.name, **fields,
        )  # fmt: skip
        log.append([event])

    @contextmanager
    def recording(
        self,
        asker: Asker,
        action: str,
        started: float,
        opened: Opened | None = None,
        told: Callable[[Any], Mapping[str, Any]] = lambda _: {},
        **fields: Any,
    ) -> Iterator[None]:
        """The change of the ledger inside the block and its row in the audit log are one transaction.

        ``told`` gives further fields of the row from the change's result.
        """
        log = self.log if opened is None else opened.log
        actor, request_id, gallery = asker.actor, current_request_id(), None if opened is None else opened.name
        with log.beside(
            lambda done: Event(
                action, actor, request_id, started, time.time(), gallery=gallery, **{**fields, **told(done)}
            )
        ):
            yield

    def erase(
        self, asker: Asker, opened: Opened, subjects: Iterable[SubjectId] = (), *, numbers: Iterable[int] = ()
    ) -> Receipt:
        """Erase subjects from the gallery and its ledger; the log says that it began, and what became of it."""
        started = time.time()
        with opened.changing:
            try:
                with self.recording(asker, ERASE, started, opened, decision=BEGUN):
                    receipt = erase_everywhere(opened.live, opened.ledger, subjects, numbers=numbers, by=asker.actor)
            except StoreError:
                self.record(asker, ERASE, started, opened, decision="failed")
                raise
        self.record(asker, ERASE, started, opened, gallery_version=receipt.version, item=receipt.number)
        return receipt

    def _opened(self, name: str, place: str, live: LiveGallery) -> Opened:
        reviews, strangers = self.settings.reviews, self.settings.strangers
        ledger = Ledger.open(
            place, review_share=reviews.share, review_people=reviews.people,
            keep_strangers=strangers.days * 86_400 or None, rotation=live.rotation,
        )  # fmt: skip
        batcher = Batcher(name, lambda: live.current, ledger.audit_log, self.settings.limits, self.metrics)
        following = None
        if place.startswith(SCHEMES):
            following = Following(live, name, lambda: self._recover(name, live, ledger, on_server=True))
        return Opened(name, live, batcher, ledger, reviews.share, strangers.days > 0, following)

    def _recover(self, name: str, live: LiveGallery, ledger: Ledger, *, on_server: bool) -> None:
        """Add the rows of the audit log that a crash left out."""
        # On a server another process may be about to write its row; in a directory nobody else writes.
        added = ledger.recovery.recover(name, live.store, before=time.time() - RUNNING if on_server else math.inf)
        if added:
            logger.warning("%d rows that a crash left out were added to the audit log", len(added))

    def _own_ledger(self) -> Ledger:
        """Of the service as a whole: where it runs on one gallery, that gallery's."""
        if self.galleries.is_directory:
            return Ledger.open(self.settings.galleries)
        return next(iter(self.galleries)).ledger


def service_of(request: Request) -> Service:
    """The service that a request is for."""
    service: Service = request.app.state.service
    return service
