"""The service's ledger, where a gallery has one: its audit log, and its part in an erasure."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

import holue
from holue.cli.output import print_json, say
from holue.errors import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from holue.service.ledger.ledger import Ledger

IN_FLIGHT_SECONDS = 2.0
"""A change that is younger may have its row on the way."""


def start_keeping_images(gallery: str) -> None:
    """A new gallery keeps pictures of its samples, in the ledger of the service."""
    if find_spec("sqlalchemy") is None:
        raise MissingDependencyError("sqlalchemy", "serve")
    from holue.service.ledger.ledger import Ledger

    with Ledger.open(gallery) as ledger:
        ledger.images.start_keeping()


@contextmanager
def ledger_of(gallery: str) -> Iterator[Ledger | None]:
    """The ledger of a gallery, or None where it was never served."""
    on_server = "://" in gallery
    if not on_server and not (Path(gallery) / "service" / "ledger.db").is_file():
        yield None
        return
    if on_server and find_spec("sqlalchemy") is None:
        yield None  # the store's own search tells where a service has left something in this database
        return
    from holue.service.ledger.database import Database
    from holue.service.ledger.ledger import Ledger

    if not Database.exists(gallery):
        yield None
        return
    with Ledger.open(gallery) as ledger:
        yield ledger


def verify_log(gallery: str, head: str | None, export: Path | None, *, json: bool) -> None:
    """Verify the audit log, and export it; exit code 1 where a row was changed, dropped or moved."""
    with ledger_of(gallery) as ledger:
        if ledger is None:
            raise InvalidParameterError(
                f"{gallery} has no audit log: it was never served; see holue log without --verify"
            )
        from holue.service.ledger.audit.audit_chain import Witness
        from holue.service.ledger.audit.recovery import NOT_DONE, RECOVERED

        found = ledger.audit_log.verify(None if head is None else Witness.parse(head))
        newest = ledger.audit_log.head()
        added = sum(one.decision in (RECOVERED, NOT_DONE) for one in ledger.audit_log.entries())
        with holue.open(gallery, read_only=True) as opened:
            left_out = ledger.recovery.missing(gallery, opened.store, before=time.time() - IN_FLIGHT_SECONDS)
        if export is not None:
            with export.open("w", encoding="utf-8") as stream:
                ledger.audit_log.export(stream)
    if json:
        print_json(
            {
                "rows": newest.sequence,
                "head": str(newest),
                "problems": [dataclasses.asdict(one) for one in found],
                "added_after_crashes": added,
                "left_out": len(left_out),
            }
        )
    else:
        for one in found:
            say(str(one))
        say(f"{newest.sequence} rows; head {newest}")
        if added:
            say(f"{added} of them were added at a start, for what a crash had left without its row")
        if left_out:
            say(
                f"{len(left_out)} changes have no row yet, after a crash: the service adds them when it is next started"
            )
        say(f"{len(found)} problems found" if found else "no row was changed, dropped or moved")
    if found:
        raise typer.Exit(1)
