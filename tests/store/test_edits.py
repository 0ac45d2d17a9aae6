"""The tokens of transactions in PostgreSQL do not add up for ever."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from holue.store.postgres.upkeep import maintenance


def test_compaction_forgets_the_tokens_of_old_transactions(postgres: Any) -> None:
    psycopg = pytest.importorskip("psycopg")
    from holue.store.postgres.store import PostgresStore

    with PostgresStore.create(postgres.url("tokens"), dim=4) as store:
        for number in range(12):
            store.enroll(np.eye(4)[:1], [number])
        with mock.patch.object(maintenance, "EDITS_KEPT", 5):
            store.compact(forget_before=store.version)
        with psycopg.connect(postgres.database) as connection:
            kept = connection.execute('SELECT count(*) FROM "holue_tokens".edit').fetchone()[0]
        assert 5 <= kept < 9
        store.enroll(np.eye(4)[:1], [99])
        assert len(store.subjects()) == 13
