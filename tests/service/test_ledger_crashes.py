"""What the ledger acknowledged is there after its process or its server was killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holue.errors import StoreUnavailableError
from holue.service.ledger.audit.audit_chain import Event
from holue.service.ledger.ledger import Ledger
from holue.service.roles import Role

APPEND = """
import sys, threading
from holue.service.ledger.audit.audit_chain import Event
from holue.service.ledger.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
def work():
    while True:
        entry, = ledger.audit_log.append([Event("identify", "aa/operator", "r", 1.0, 2.0)])
        sys.stdout.write(f"{entry.sequence}\\n")
        sys.stdout.flush()
for _ in range(4):
    threading.Thread(target=work).start()
"""


def test_no_acknowledged_row_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", APPEND, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(60)]
    process.kill()
    acknowledged += [int(line) for line in process.stdout.read().splitlines()[:-1]]
    process.wait()
    with Ledger.open(tmp_path) as ledger:
        assert ledger.problems() == []
        assert set(acknowledged) <= {entry.sequence for entry in ledger.audit_log.entries()}
        assert len(ledger.audit_log.append([Event("identify", "aa/operator", "r", 1.0, 2.0)])) == 1
        assert ledger.problems() == []


def test_the_ledger_goes_on_when_the_server_is_back(own_postgres: Any) -> None:
    event = Event("identify", "aa/operator", "r", 1.0, 2.0)
    with Ledger.open(own_postgres.url("g")) as ledger:
        made = ledger.keys.create(Role.OPERATOR)
        ledger.audit_log.append([event, event])
        own_postgres.crash()
        with pytest.raises(StoreUnavailableError):
            ledger.audit_log.append([event])
        with pytest.raises(StoreUnavailableError):
            ledger.keys.check(made.text)
        own_postgres.start()
        assert ledger.keys.check(made.text) == made.key
        ledger.audit_log.append([event])
        assert ledger.audit_log.verify() == []
        assert ledger.audit_log.head().sequence == 3
