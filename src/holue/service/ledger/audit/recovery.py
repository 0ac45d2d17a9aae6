"""Recovery: rows of the audit log that a crash left out, added from what the gallery's store says was changed.

A change of the store carries the id of its request, in the change's own transaction; its row in the log follows. If the process
dies in between, the change is there and the row is not. An operation of the store that no row of its request covers in time
(started ≤ operation ≤ ended) has no row: one is added, with the decision ``recovered``. An erasure begins in the ledger, whose
row says ``begun``; where the store knows of no such erasure, a row says ``not-done``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import sqlalchemy as sql

from holue.live.calibration.calibrations import LIST
from holue.live.kept_settings import NAME as SETTINGS
from holue.service.ledger.audit.audit_chain import Entry, Event
from holue.service.ledger.audit.audit_log import AuditLog
from holue.service.ledger.database import Database
from holue.service.ledger.tables import AUDIT, META
from holue.store.protocol import Store
from holue.store.reference import CHANGE
from holue.store.values import Operation

BEGUN, RECOVERED, NOT_DONE = "begun", "recovered", "not-done"
ERASE = "erase"
READS = ("identify", "verify", "audit")
"""Actions that change nothing: their rows stand for no change."""
PAGE = 500
_ACTIONS = {
    "add_samples": "add-samples", "replace": "replace-samples", "remove_samples": "remove-sample", "rename": "change",
    "update": "change",
}  # fmt: skip
_CALIBRATION = "calibration-"
_MARK = "recovered"
"""Under this name the table of the ledger's own facts says how far operations and rows were looked at."""


@dataclass(frozen=True)
class _Mark:
    operation: int = 0
    sequence: int = 0


class Recovery:
    """Compares the log of a gallery with the operations of its store.

    >>> from holue.service.ledger.ledger import Ledger
    >>> from holue.store.memory import MemoryStore
    >>> from holue.store.reference import made_for
    >>> store = MemoryStore(dim=2)
    >>> with Ledger.open(":memory:") as ledger:
    ...     with made_for("request-17"):
    ...         enrolled = store.enroll([[1, 0]], ["ann"], by="0a1b2c3d4e5f/enroller")  # and the process died
    ...     added = ledger.recovery.recover("door", store)
    ...     [(row.action, row.request_id, row.gallery_version, row.decision) for row in added], ledger.audit_log.verify()
    ([('enroll', 'request-17', 1, 'recovered')], [])
    """

    def __init__(self, database: Database, log: AuditLog) -> None:
        self._database, self._log = database, log

    def missing(self, gallery: str, store: Store, *, before: float = float("inf")) -> list[Event]:
        """The rows that :meth:`recover` would add."""
        found: list[Event] = []
        erased: set[str] = set()
        with self._database.reading() as connection:
            mark = _read_mark(connection, store)
            last = mark.operation
            while part := _part(store, last, before):
                found += _missing(connection, gallery, part)
                erased |= _erased(part)
                last = part[-1].number
            # An erasure that began before that time may have ended after it.
            erased |= _erased(store.operations(last))
            return found + _not_done(connection, mark.sequence, before, erased)

    def recover(self, gallery: str, store: Store, *, before: float = float("inf")) -> list[Entry]:
        """Add the missing rows of changes made before a time, in seconds since 1970; later ones may be on their way."""
        erased: set[str] = set()

        def work(connection: sql.Connection) -> tuple[list[Entry], bool]:
            mark = _read_mark(connection, store)
            part = _part(store, mark.operation, before)
            events = _missing(connection, gallery, part)
            erased.update(_erased(part))
            if part:
                mark = replace(mark, operation=part[-1].number)
            else:  # the store did nothing for an erasure that was begun and is not among its operations
                erased.update(_erased(store.operations(mark.operation)))
                events = _not_done(connection, mark.sequence, before, erased)
                newest = sql.select(AUDIT.c.sequence).where(AUDIT.c.ended < before).order_by(AUDIT.c.sequence.desc())
                head = connection.execute(newest.limit(1)).scalar_one_or_none()
                mark = replace(mark, sequence=max(head or 0, mark.sequence))
            added = self._log.extend(connection, events)
            _write_mark(connection, mark)
            return added, not part

        added: list[Entry] = []
        whole = False
        while not whole:
            some, whole = self._database.writing(work)
            self._log.note(some)
            added += some
        return added


def _part(store: Store, after: int, before: float) -> list[Operation]:
    """The next operations that were made before a time, not all at once: there may be millions."""
    return list(takewhile(lambda one: one.time < before, store.operations(after, PAGE)))


def _erased(operations: Iterable[Operation]) -> set[str]:
    """The requests of erasures that the store has made."""
    return {str(one.detail["request"]) for one in _of_requests(operations) if one.detail.get("kind") == ERASE}


def _of_requests(operations: Iterable[Operation]) -> list[Operation]:
    return [one for one in operations if "request" in one.detail and _action(one) is not None]


def _action(operation: Operation) -> str | None:
    """What the log calls an operation; None where it needs no row."""
    if operation.verb == CHANGE:
        kind = str(operation.detail["kind"])
        return _ACTIONS.get(kind, kind)
    if operation.verb == "snapshot":
        return "snapshot"
    if operation.verb == "put_artifact":
        name = str(operation.detail["name"])
        if name == SETTINGS:
            return "create" if operation.by is None else "change-settings"
        return "activate" if name == LIST else "calibrate" if name.startswith(_CALIBRATION) else None
    return None


def _missing(connection: sql.Connection, gallery: str, settled: Sequence[Operation]) -> list[Event]:
    """The rows of operations that no row of their request covers."""
    operations = _of_requests(settled)
    requests = {str(one.detail["request"]) for one in operations}
    rows = sql.select(AUDIT.c.request_id, AUDIT.c.started, AUDIT.c.ended).where(
        AUDIT.c.request_id.in_(requests), AUDIT.c.action.not_in(READS)
    )
    spans: dict[str, list[tuple[float, float]]] = {}
    for request, started, ended in connection.execute(rows):
        spans.setdefault(request, []).append((started, ended))
    found: list[Event] = []
    for one in operations:
        request = str(one.detail["request"])
        if not any(started <= one.time <= ended for started, ended in spans.get(request, ())):
            if _action(one) == "activate" and found and found[-1].request_id == request:
                continue  # of a calibration that was made and answered at once
            found.append(_event(gallery, one))
    return found


def _event(gallery: str, operation: Operation) -> Event:
    name = str(operation.detail.get("name", ""))
    number = int(name.removeprefix(_CALIBRATION)) if name.startswith(_CALIBRATION) else None
    return Event(
        _action(operation) or operation.verb, operation.by or "-", str(operation.detail["request"]), operation.time,
        operation.time, gallery=gallery, gallery_version=operation.detail.get("version"), calibration=number,
        item=number, decision=RECOVERED,
    )  # fmt: skip


def _not_done(connection: sql.Connection, after: int, before: float, erased: set[str]) -> list[Event]:
    """Rows for erasures that were begun, of which no further row tells, and which the store knows nothing of."""
    later = AUDIT.alias()
    told = sql.exists().where(
        later.c.request_id == AUDIT.c.request_id, later.c.action == ERASE, later.c.sequence > AUDIT.c.sequence
    )
    rows = sql.select(AUDIT).where(
        AUDIT.c.sequence > after, AUDIT.c.decision == BEGUN, AUDIT.c.action == ERASE, AUDIT.c.ended < before, ~told
    )
    return [
        Event(ERASE, one.actor, one.request_id, one.started, one.ended, gallery=one.gallery, decision=NOT_DONE)
        for one in connection.execute(rows)
        if one.request_id not in erased
    ]


def _read_mark(connection: sql.Connection, store: Store) -> _Mark:
    text = connection.execute(sql.select(META.c.value).where(META.c.key == _MARK)).scalar_one_or_none()
    mark = _Mark() if text is None else _Mark(**json.loads(text))
    # A gallery that was restored from a backup has fewer operations than were looked at.
    return mark if not mark.operation or store.operations(mark.operation - 1, 1) else _Mark(0, mark.sequence)


def _write_mark(connection: sql.Connection, mark: _Mark) -> None:
    connection.execute(sql.delete(META).where(META.c.key == _MARK))
    connection.execute(sql.insert(META), [{"key": _MARK, "value": json.dumps(vars(mark))}])
