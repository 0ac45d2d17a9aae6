"""Finishing: what is done between a scan and its answers: documents are made, and the audit log is durable before one is sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from holue.service.galleries.answered import Answered
from holue.service.galleries.probes import Probes
from holue.service.http.access import Asker
from holue.service.ledger.audit.audit_chain import Event
from holue.service.ledger.audit.audit_log import AuditLog

SMALL = 16
"""Probes up to which requests are finished between two scans; larger ones have a thread of their own, and hold nobody up."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Who asked what, for the log and the answer."""

    action: str
    asker: Asker
    request_id: str
    started: float
    probes: int
    subject: Any = None  # whom a probe claims to be, in a verification


Finished = tuple[Response, list[Event]]
"""A response, and the rows that have to be in the log before it is sent."""
Finish = Callable[[Answered, Probes, list[Asked]], list[Finished | Exception]]
"""Makes the responses to requests, whose probes and answers follow each other."""


def finish_all(
    log: AuditLog, finish: Finish, answered: Answered, probes: Probes, asked: list[Asked]
) -> list[Response | Exception]:
    """A response or an error for each request, once the rows of all of them are durable, in one transaction."""
    finished = _finished(finish, answered, probes, asked)
    rows = [row for each in finished if not isinstance(each, Exception) for row in each[1]]
    try:
        log.append(rows)
    except Exception as error:
        return [error] * len(asked)
    return [each if isinstance(each, Exception) else each[0] for each in finished]


def _finished(finish: Finish, answered: Answered, probes: Probes, asked: list[Asked]) -> list[Finished | Exception]:
    """Where it fails, each request is finished alone, so that none spoils the others."""
    try:
        return finish(answered, probes, asked)
    except Exception as error:
        if len(asked) == 1:
            return [error]
    found: list[Finished | Exception] = []
    end = 0
    for each in asked:
        rows = slice(end, end + each.probes)
        found += _finished(finish, answered.part(rows, answered.waited), probes.take(rows), [each])
        end += each.probes
    return found
