"""Tables of the ledger, for SQLite and PostgreSQL alike.

Subjects are named by their numbers, never by their ids; so a rename changes nothing here, and no name has to be erased.
Times are seconds since 1970.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sql
from sqlalchemy import BigInteger, Column, Float, LargeBinary, MetaData, Table, Text

VERSION = 1
"""Number of the newest layout of the tables."""
METADATA = MetaData()
WHOLE = BigInteger().with_variant(sql.Integer(), "sqlite")  # SQLite counts up by itself in INTEGER columns only
REAL = Float(53)


def _table(name: str, *columns: Column[Any] | sql.Index, **options: Any) -> Table:
    return Table(name, METADATA, *columns, **options)


META = _table("meta", Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

KEYS = _table(
    "access_key",
    Column("prefix", Text, primary_key=True),
    Column("sha256", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("gallery", Text),  # None: every gallery
    Column("holder", Text),
    Column("created", REAL, nullable=False),
    Column("created_by", Text),
    Column("expires", REAL),
    Column("revoked", REAL),
    Column("replaces", Text),
)

AUDIT = _table(
    "audit",
    Column("sequence", WHOLE, primary_key=True, autoincrement=False),
    Column("started", REAL, nullable=False),
    Column("ended", REAL, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("gallery", Text),
    Column("gallery_version", WHOLE),
    Column("calibration", WHOLE),
    Column("model", Text),
    Column("decision", Text),
    Column("input_digest", Text),
    Column("answer_digest", Text),
    Column("request_id", Text, nullable=False),
    Column("probe", WHOLE),
    Column("item", WHOLE),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("salt", Text, nullable=False),
    sql.Index("audit_request", "request_id"),
)

AUDIT_HEAD = _table(
    "audit_head",
    Column("one", WHOLE, primary_key=True, autoincrement=False),
    Column("sequence", WHOLE, nullable=False),
    Column("hash", Text, nullable=False),
)

REVIEWS = _table(
    "review",
    Column("number", WHOLE, primary_key=True),
    Column("created", REAL, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("probe", WHOLE, nullable=False),
    Column("embedding", LargeBinary, nullable=False),
    Column("concentration", REAL),
    Column("embedding_digest", Text, nullable=False),
    Column("gallery_version", WHOLE, nullable=False),
    Column("calibration", WHOLE),
    Column("model", Text),
    Column("decision", Text, nullable=False),
    Column("subject", WHOLE),  # the number of the accepted subject
    Column("answer", Text, nullable=False),  # JSON
    Column("information", REAL, nullable=False),
    Column("sampled_at", REAL),  # the permanent random number of a sampled answer; None for a filtered one
    Column("share", REAL),  # the sampling share when it was answered
    Column("state", Text, nullable=False),
    Column("claimed_by", Text),
    Column("claimed_until", REAL),
    sql.Index("review_state", "state", "sampled_at"),
    sql.Index("review_digest", "embedding_digest"),
    sqlite_autoincrement=True,
)

DECISIONS = _table(
    "review_decision",
    Column("number", WHOLE, primary_key=True),
    Column("review", WHOLE, nullable=False),
    Column("time", REAL, nullable=False),
    Column("actor", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", WHOLE),
    Column("undone", REAL),
    Column("undone_by", Text),
    sql.Index("review_decision_review", "review"),
    sqlite_autoincrement=True,
)

CANDIDATES = _table(
    "review_candidate",
    Column("review", WHOLE, primary_key=True, autoincrement=False),
    Column("rank", WHOLE, primary_key=True, autoincrement=False),
    Column("subject", WHOLE, nullable=False),
    Column("score", REAL, nullable=False),
    Column("probability", REAL, nullable=False),
    sql.Index("review_candidate_subject", "subject"),
)

ANSWERED = _table(
    "answered",
    Column("calibration", WHOLE, primary_key=True, autoincrement=False),  # 0: none
    Column("share", REAL, primary_key=True, autoincrement=False),
    Column("unfiltered", WHOLE, nullable=False),
)

LABELLED = _table(
    "labelled_probe",
    Column("review", WHOLE, primary_key=True, autoincrement=False),
    Column("subject", WHOLE),  # None: nobody who was enrolled then
    Column("time", REAL, nullable=False),
    sql.Index("labelled_probe_subject", "subject"),
)

STRANGERS = _table(
    "stranger",
    Column("number", WHOLE, primary_key=True),
    Column("embedding", LargeBinary, nullable=False),
    Column("concentration", REAL),
    Column("seen", REAL, nullable=False),
    Column("expires", REAL, nullable=False),
    Column("model", Text),
    Column("request_id", Text, nullable=False),
    sql.Index("stranger_expires", "expires"),
    sqlite_autoincrement=True,  # a number is never used again
)

IDEMPOTENCY = _table(
    "idempotency",
    Column("actor", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("status", WHOLE),  # None: the request is still running, or never ended
    Column("media_type", Text),
    Column("response", LargeBinary),
    Column("expires", REAL, nullable=False),
    sql.Index("idempotency_expires", "expires"),
)

SESSIONS = _table(
    "page_session",
    Column("sha256", Text, primary_key=True),  # of the token in the cookie
    Column("prefix", Text, nullable=False),  # of the key that signed in
    Column("form_token", Text, nullable=False),
    Column("expires", REAL, nullable=False),
)

IMAGES = _table(
    "image",
    Column("kind", Text, primary_key=True),  # what it shows: a sample, or the probe of a review
    Column("number", WHOLE, primary_key=True, autoincrement=False),
    Column("media_type", Text, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

MEASURES = _table(
    "sample_measures",
    Column("sample", WHOLE, primary_key=True, autoincrement=False),
    Column("measures", Text, nullable=False),  # JSON
)

DISMISSED = _table(
    "dismissed_finding",
    Column("kind", Text, primary_key=True),
    Column("first", WHOLE, primary_key=True, autoincrement=False),
    Column("second", WHOLE, primary_key=True, autoincrement=False),
    Column("time", REAL, nullable=False),
    Column("actor", Text, nullable=False),
)

ADDED = (MEASURES,)
"""Tables that ledgers of the first layout may lack; they are made when such a ledger is opened."""
BYTES = {REVIEWS: "embedding", STRANGERS: "embedding", IDEMPOTENCY: "response", IMAGES: "content"}
"""Columns that may hold what an erasure has to find again: stored as they are, and left out of the planner's statistics."""
