from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sql
from hypothesis import given
from hypothesis import strategies as st

from holue.errors import InvalidParameterError, StoreError
from holue.service.ledger.audit.audit_chain import GENESIS, Entry, Event, Witness, find_tampering
from holue.service.ledger.audit.audit_log import WITNESS, AuditLog, read_export
from holue.service.ledger.database import LOG_PAGES, Database
from holue.service.ledger.tables import AUDIT, AUDIT_HEAD


def event(number: int) -> Event:
    return Event(
        "identify", "0a1b2c3d4e5f/operator", f"request-{number}", float(number), number + 0.25, "door", 7, 2, "arcface",
        "accepted", 0, None, np.full(4, number, np.float32).tobytes(), {"subject": "ann", "score": 0.5 + number},
    )  # fmt: skip


def chain(n: int) -> list[Entry]:
    entries: list[Entry] = []
    for number in range(n):
        last = entries[-1] if entries else None
        entries.append(Entry.of(event(number)).after(number, last.hash if last else GENESIS))
    return entries


def head(entries: list[Entry]) -> Witness:
    return Witness(entries[-1].sequence, entries[-1].hash)


LOG = chain(8)
PLACES = st.integers(0, len(LOG) - 1)


def test_an_untouched_log_has_nothing_wrong() -> None:
    assert find_tampering(LOG, [head(LOG)]) == []
    assert find_tampering([]) == []


@given(
    PLACES, st.sampled_from(["started", "actor", "decision", "answer_digest", "gallery_version", "request_id", "probe"])
)
def test_a_changed_row_is_named(place: int, name: str) -> None:
    other = {"started": 9.5, "gallery_version": 99, "probe": 5}.get(name, "other")
    changed = [*LOG[:place], replace(LOG[place], **{name: other}), *LOG[place + 1 :]]
    assert [(found.kind, found.sequence) for found in find_tampering(changed, [head(LOG)])] == [("changed", place + 1)]


@given(st.sets(PLACES, min_size=1, max_size=len(LOG)))
def test_dropped_rows_are_named_at_the_end_too(places: set[int]) -> None:
    rest = [entry for place, entry in enumerate(LOG) if place not in places]
    found = find_tampering(rest, [head(LOG)])
    assert {one.kind for one in found} == {"dropped"}
    runs = [place + 1 for place in sorted(places) if place - 1 not in places]
    assert [one.sequence for one in found] == runs


@given(st.tuples(PLACES, PLACES).filter(lambda pair: pair[0] < pair[1]))
def test_exchanged_rows_are_named(pair: tuple[int, int]) -> None:
    one, other = pair
    moved = list(LOG)
    moved[one] = replace(LOG[other], sequence=one + 1)
    moved[other] = replace(LOG[one], sequence=other + 1)
    found = find_tampering(moved, [head(LOG)])
    assert {(tampering.kind, tampering.sequence) for tampering in found} >= {
        ("reordered", one + 1),
        ("reordered", other + 1),
    }
    assert {tampering.kind for tampering in found} <= {"reordered", "replaced"}
    assert f"row {other + 1} stands in the place of row {one + 1}" in [str(tampering) for tampering in found]


@given(st.integers(0, len(LOG) - 2))
def test_a_row_with_a_hash_of_its_own_is_found_by_the_next_one(place: int) -> None:
    forged = replace(LOG[place], decision="rejected")
    forged = replace(forged, hash=forged.expected_hash())
    found = find_tampering([*LOG[:place], forged, *LOG[place + 1 :]])
    assert [(one.kind, one.sequence) for one in found] == [("replaced", place + 1)]


def test_a_log_written_anew_as_a_whole_is_found_by_a_witness_only() -> None:
    forged: list[Entry] = []
    for entry in LOG:
        changed = replace(entry, decision="rejected")
        forged.append(changed.after(entry.sequence - 1, forged[-1].hash if forged else GENESIS))
    assert find_tampering(forged) == []
    for noted in LOG:
        assert [one.kind for one in find_tampering(forged, [Witness(noted.sequence, noted.hash)])] == ["replaced"]


def test_neither_name_nor_embedding_is_in_a_row_and_equal_answers_look_different() -> None:
    one, other = Entry.of(event(1)), Entry.of(event(1))
    assert "ann" not in str(one.to_dict())
    assert one.answer_digest != other.answer_digest
    assert one.input_digest != other.input_digest


def test_the_head_is_read_as_it_is_written() -> None:
    assert Witness.parse(str(head(LOG))) == head(LOG)
    for text in ("", "3", "x:" + "0" * 64, "3:12", "3:" + "Z" * 64):
        with pytest.raises(InvalidParameterError, match="SEQUENCE:HASH"):
            Witness.parse(text)


def test_the_log_is_kept_and_verifies(open_ledger: Callable[[], Database]) -> None:
    log = AuditLog(open_ledger())
    log.append([event(1), event(2)])
    log.append([event(3)])
    other = AuditLog(open_ledger())
    assert [entry.request_id for entry in other.entries()] == ["request-1", "request-2", "request-3"]
    assert [entry.sequence for entry in other.entries(after=1, limit=1)] == [2]
    assert [entry.sequence for entry in other.of_request("request-3")] == [3]
    assert other.verify(log.head()) == []
    assert log.append([]) == []


def test_the_log_of_the_database_is_begun_anew_early(tmp_path: Path) -> None:
    """Syncing a file that grows takes longer than one that is overwritten, so it grows for few rows only."""
    with Database.of_gallery(tmp_path) as database:
        log = AuditLog(database)
        for number in range(400):
            log.append([event(number)])
        assert database.file is not None
        assert database.file.with_name("ledger.db-wal").stat().st_size < 1.2 * LOG_PAGES * 4096


def test_answers_and_inputs_are_recognised(database: Database) -> None:
    log = AuditLog(database)
    log.append([event(1)])
    assert log.is_answer(1, {"score": 1.5, "subject": "ann"})
    assert not log.is_answer(1, {"score": 1.5, "subject": "bob"})
    assert log.is_input(1, np.full(4, 1, np.float32).tobytes())
    assert not log.is_input(1, np.full(4, 2, np.float32).tobytes())


def test_rows_of_many_threads_and_processes_make_one_chain(open_ledger: Callable[[], Database]) -> None:
    logs = [AuditLog(open_ledger()) for _ in range(2)]
    sequences: list[int] = []

    def work(thread: int) -> None:
        for number in range(10):
            sequences.extend(entry.sequence for entry in logs[thread % 2].append([event(number)]))

    threads = [threading.Thread(target=work, args=[thread]) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sequences) == list(range(1, 81))
    assert logs[0].verify() == []


def test_what_is_changed_in_the_table_is_named(database: Database) -> None:
    log = AuditLog(database)
    log.append([event(number) for number in range(5)])
    database.writing(lambda c: c.execute(sql.update(AUDIT).where(AUDIT.c.sequence == 3).values(decision="rejected")))
    assert [str(found) for found in log.verify()] == ["row 3 was changed"]


def test_a_dropped_end_is_found_by_the_head(database: Database) -> None:
    log = AuditLog(database)
    log.append([event(number) for number in range(5)])
    database.writing(lambda c: c.execute(sql.delete(AUDIT).where(AUDIT.c.sequence > 3)))
    assert {(found.kind, found.sequence) for found in log.verify()} == {("dropped", 4)}


def test_rows_beyond_the_head_are_found(database: Database) -> None:
    log = AuditLog(database)
    log.append([event(number) for number in range(5)])
    kept = log.head()
    log.append([event(6)])
    database.writing(lambda c: c.execute(sql.update(AUDIT_HEAD).values(sequence=kept.sequence, hash=kept.hash)))
    assert "added" in {found.kind for found in log.verify()}


def test_a_ledger_put_back_to_an_older_state_is_found_by_the_file_beside_it(tmp_path: Path) -> None:
    with Database.of_gallery(tmp_path) as database:
        AuditLog(database).append([event(1)])
    file = tmp_path / "service" / "ledger.db"
    older = file.read_bytes()
    with Database.of_gallery(tmp_path) as database:
        AuditLog(database).append([event(2), event(3)])
    for path in file.parent.glob("ledger.db*"):
        path.unlink()
    file.write_bytes(older)
    with Database.of_gallery(tmp_path) as database:
        found = AuditLog(database).verify()
        assert [str(one) for one in found] == [
            f"rows 2 to 3 were dropped at the end, by the file {WITNESS!r} beside the ledger"
        ]
        (file.parent / WITNESS).unlink()
        assert ["missing or damaged" in str(one) for one in AuditLog(database).verify()] == [True]


def test_an_exported_log_is_read_back_and_verifies(file_database: Database) -> None:
    log = AuditLog(file_database)
    log.append([event(number) for number in range(5)])
    stream = io.StringIO()
    assert log.export(stream) == 5
    lines = stream.getvalue().splitlines(keepends=True)
    assert find_tampering(read_export(io.StringIO("".join(lines))), [log.head()]) == []
    assert find_tampering(read_export(io.StringIO("".join(lines[:2] + lines[3:]))))
    with pytest.raises(InvalidParameterError, match="line 1"):
        list(read_export(io.StringIO("{}\n")))


def test_long_logs_are_read_in_parts(file_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holue.service.ledger.audit.audit_log.PAGE", 3)
    log = AuditLog(file_database)
    log.append([event(number) for number in range(9)])
    assert [entry.sequence for entry in log.entries()] == list(range(1, 10))
    assert [entry.sequence for entry in log.entries(after=2, limit=4)] == [3, 4, 5, 6]
    assert log.verify() == []


def test_what_is_not_committed_is_not_acknowledged(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(database)
    log.append([event(0)])
    commit, fails = database._queue._commit, iter([True, False, True, True] + [False] * 1000)

    def sometimes() -> None:
        if next(fails):
            raise StoreError("no space left on the disk")
        commit()

    monkeypatch.setattr(database._queue, "_commit", sometimes)
    acknowledged: list[str] = []
    refused: list[str] = []

    def work(thread: int) -> None:
        for number in range(6):
            name = f"{thread}-{number}"
            try:
                log.append([replace(event(number), request_id=name)] * 2)
                acknowledged.append(name)
            except StoreError:
                refused.append(name)

    threads = [threading.Thread(target=work, args=[thread]) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [entry.request_id for entry in log.entries(after=1)]
    assert len(acknowledged) + len(refused) == 48
    assert refused
    assert all(rows.count(name) == 2 for name in acknowledged)
    assert log.verify() == []
    assert len(rows) == len(set(rows)) * 2  # nothing was written twice
