"""Recovery: rows of the audit log that a crash left out, added from what the gallery's store says was changed.

A change of the store carries the id of its request, in the change's own transaction; its row in the log follows. If the process
dies in between, the change is there and the row is not. An operation of the store that no row of its request covers in time
(started ≤ operation ≤ ended) has no row: one is added, with the decision ``recovered``. An erasure begins in the ledger, whose
row says ``begun``; where the store knows of no such erasure, a row says ``not-done``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sqlalchemy as sql

from holue.live.calibrations import LIST
from holue.live.kept_settings import NAME as SETTINGS
from holue.service.ledger.audit_chain import Entry, Event
from holue.service.ledger.audit_log import AuditLog
from holue.service.ledger.database import Database
from holue.service.ledger.tables import AUDIT, META
from holue.store.protocol import Store
from holue.store.reference import CHANGE
from holue.store.values import Operation

BEGUN, RECOVERED, NOT_DONE = "begun", "recovered", "not-done"
ERASE = "erase"
READS = ("identify", "verify", "audit")
"""Actions that change nothing: their rows stand for no change."""
AT_ONCE = 500
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
        with self._database.reading() as connection:
            mark = _read_mark(connection, store)
            settled = [one for one in store.operations(mark.operation) if one.time < before]
            return _missing(connection, gallery, _of_requests(settled), mark.sequence, before)

    def recover(self, gallery: str, store: Store, *, before: float = float("inf")) -> list[Entry]:
        """Add the missing rows of changes made before a time, in seconds since 1970; later ones may be on their way."""

        def work(connection: sql.Connection) -> list[Entry]:
            mark = _read_mark(connection, store)
            settled = [one for one in store.operations(mark.operation) if one.time < before]
            newest = sql.select(AUDIT.c.sequence).where(AUDIT.c.ended < before).order_by(AUDIT.c.sequence.desc())
            head = connection.execute(newest.limit(1)).scalar_one_or_none()
            added = self._log.extend(
                connection, _missing(connection, gallery, _of_requests(settled), mark.sequence, before)
            )
            _write_mark(
                connection,
                _Mark(settled[-1].number if settled else mark.operation, max(head or 0, mark.sequence)),
            )
            return added

        added = self._database.writing(work)
        self._log.note(added)
        return added


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


def _missing(
    connection: sql.Connection, gallery: str, operations: Sequence[Operation], after: int, before: float
) -> list[Event]:
    requests = sorted({str(one.detail["request"]) for one in operations})
    spans: dict[str, list[tuple[float, float]]] = {}
    for place in range(0, len(requests), AT_ONCE):
        rows = sql.select(AUDIT.c.request_id, AUDIT.c.started, AUDIT.c.ended).where(
            AUDIT.c.request_id.in_(requests[place : place + AT_ONCE]), AUDIT.c.action.not_in(READS)
        )
        for request, started, ended in connection.execute(rows):
            spans.setdefault(request, []).append((started, ended))
    found: list[Event] = []
    for one in operations:
        request = str(one.detail["request"])
        if not any(started <= one.time <= ended for started, ended in spans.get(request, ())):
            if _action(one) == "activate" and found and found[-1].request_id == request:
                continue  # of a calibration that was made and answered at once
            found.append(_event(gallery, one))
    done = {str(one.detail["request"]) for one in operations if one.detail.get("kind") == ERASE}
    return found + [
        _not_done(entry) for entry in _unfinished(connection, after, before) if entry.request_id not in done
    ]


def _event(gallery: str, operation: Operation) -> Event:
    name = str(operation.detail.get("name", ""))
    number = int(name.removeprefix(_CALIBRATION)) if name.startswith(_CALIBRATION) else None
    return Event(
        _action(operation) or operation.verb, operation.by or "-", str(operation.detail["request"]), operation.time,
        operation.time, gallery=gallery, gallery_version=operation.detail.get("version"), calibration=number,
        item=number, decision=RECOVERED,
    )  # fmt: skip


def _unfinished(connection: sql.Connection, after: int, before: float) -> list[Entry]:
    """Erasures that were begun, and of which no further row tells."""
    later = AUDIT.alias()
    told = sql.exists().where(
        later.c.request_id == AUDIT.c.request_id, later.c.action == ERASE, later.c.sequence > AUDIT.c.sequence
    )
    rows = sql.select(AUDIT).where(
        AUDIT.c.sequence > after, AUDIT.c.decision == BEGUN, AUDIT.c.action == ERASE, AUDIT.c.ended < before, ~told
    )
    return [Entry(**row._mapping) for row in connection.execute(rows)]


def _not_done(begun: Entry) -> Event:
    return Event(
        ERASE, begun.actor, begun.request_id, begun.started, begun.ended, gallery=begun.gallery, decision=NOT_DONE
    )


def _read_mark(connection: sql.Connection, store: Store) -> _Mark:
    text = connection.execute(sql.select(META.c.value).where(META.c.key == _MARK)).scalar_one_or_none()
    mark = _Mark() if text is None else _Mark(**json.loads(text))
    # A gallery that was restored from a backup has fewer operations than were looked at.
    return mark if not mark.operation or store.operations(mark.operation - 1) else _Mark(0, mark.sequence)


def _write_mark(connection: sql.Connection, mark: _Mark) -> None:
    connection.execute(sql.delete(META).where(META.c.key == _MARK))
    connection.execute(sql.insert(META), [{"key": _MARK, "value": json.dumps(vars(mark))}])
