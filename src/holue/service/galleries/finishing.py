"""Finishing: what is done between a scan and its answers: documents are made, and the audit log is durable before one is sent."""

from __future__ import annotations

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from holue.service.http.together import Together
from holue.service.ledger.audit_chain import Event
from holue.service.ledger.audit_log import AuditLog

Finished = tuple[Response, list[Event]]
"""A response, and the rows that have to be in the log before it is sent."""
Finish = Callable[[], Finished]
SMALL = 16
"""Probes up to which requests are finished together; larger ones have a thread of their own, so that they hold nobody up."""


class Finishing:
    """The answers of one gallery. Requests that shared a scan share one transaction of the log, and one thread."""

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self._together = Together(self._finish_all, "finish")

    async def finish(self, finish: Finish, probes: int) -> Response:
        """The response, once its rows are durable."""
        if probes <= SMALL:
            return await self._together.submit(finish)
        [response] = await run_in_threadpool(self._finish_all, [finish])
        if isinstance(response, Exception):
            raise response
        return response

    def close(self) -> None:
        """Finish what waits."""
        self._together.close()

    def _finish_all(self, all_of_them: list[Finish]) -> list[Response | Exception]:
        responses: list[Response | Exception] = []
        rows: list[Event] = []
        for finish in all_of_them:
            try:
                response, events = finish()
            except Exception as error:
                responses.append(error)
            else:
                responses.append(response)
                rows += events
        self._log.append(rows)
        return responses
