"""Audit chain: rows of a log, each with the hash of the one before, and what is wrong with a list of them.

    hash(n) = SHA-256(row n without its hash and salt, with hash(n − 1))

A row that is changed no longer has its hash; one that is dropped leaves a gap; one that is moved fits another place. Whoever can
rewrite the whole log can also compute all hashes anew: that shows only beside a witness, a pair of sequence and hash that was
noted elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from holue.errors import InvalidParameterError

GENESIS = "0" * 64
"""What stands for the hash before the first row."""
SALT_BYTES = 16


@dataclass(frozen=True)
class Event:
    """What is to be logged. ``input`` and ``answer`` are logged as salted digests: no embedding and no name is kept."""

    action: str
    actor: str
    request_id: str
    started: float
    ended: float
    gallery: str | None = None
    gallery_version: int | None = None
    calibration: int | None = None
    model: str | None = None
    decision: str | None = None
    probe: int | None = None  # its place in the request
    item: int | None = None  # the review, erasure or calibration concerned
    input: bytes | None = field(default=None, repr=False)
    answer: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Entry:
    """A row of the log."""

    sequence: int
    started: float
    ended: float
    actor: str
    action: str
    gallery: str | None
    gallery_version: int | None
    calibration: int | None
    model: str | None
    decision: str | None
    input_digest: str | None
    answer_digest: str | None
    request_id: str
    probe: int | None
    item: int | None
    previous: str
    hash: str
    salt: str = field(repr=False)

    @classmethod
    def of(cls, event: Event, salt: str | None = None) -> Entry:
        """An entry that has no place in the chain yet; a salt is a secret random number, a new one for every entry."""
        salt = secrets.token_hex(SALT_BYTES) if salt is None else salt
        given = {name: getattr(event, name) for name in _PLAIN}
        return cls(
            sequence=0, **given, previous="", hash="", salt=salt,
            input_digest=None if event.input is None else digest(salt, event.input),
            answer_digest=None if event.answer is None else digest(salt, canonical(event.answer)),
        )  # fmt: skip

    def after(self, sequence: int, previous: str) -> Entry:
        """The same entry behind the row with this sequence and hash."""
        values = {**vars(self), "sequence": sequence + 1, "previous": previous}
        return Entry(**{**values, "hash": _hash_of([values[name] for name in _COVERED])})

    def expected_hash(self, sequence: int | None = None) -> str:
        """The hash that its contents call for, here or at another place."""
        covered = [getattr(self, name) for name in _COVERED]
        if sequence is not None:
            covered[0] = sequence
        return _hash_of(covered)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return dict(vars(self))


_PLAIN = tuple(f.name for f in fields(Event) if f.name not in ("input", "answer"))
_COVERED = tuple(f.name for f in fields(Entry) if f.name not in ("hash", "salt"))
"""The salt is covered by the digests; a row without it still verifies, and its digests then match nothing any more."""


@dataclass(frozen=True)
class Witness:
    """A sequence and the hash of that row, noted outside the log.

    >>> Witness.parse("3:" + "ab" * 32).sequence
    3
    """

    sequence: int
    hash: str
    where: str = "the noted head"

    @classmethod
    def parse(cls, text: str) -> Witness:
        """From ``SEQUENCE:HASH``, as ``str`` gives it."""
        number, _, value = text.partition(":")
        if not number.isdecimal() or len(value) != len(GENESIS) or not set(value) <= set("0123456789abcdef"):
            raise InvalidParameterError(f"a head reads SEQUENCE:HASH with 64 hexadecimal digits, got {text!r}")
        return cls(int(number), value)

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


@dataclass(frozen=True)
class Tampering:
    """A row that is not as it was written, or is not there; ``kind`` is changed, dropped, reordered, replaced or added."""

    kind: str
    sequence: int
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def find_tampering(entries: Iterable[Entry], witnesses: Iterable[Witness] = ()) -> list[Tampering]:
    """Everything that is wrong with a log, row by row; the entries come in the order of their sequence.

    >>> log = [first := Entry.of(Event("identify", "0a/operator", "r1", 1.0, 2.0)).after(0, GENESIS)]
    >>> log += [Entry.of(Event("identify", "0a/operator", "r2", 3.0, 4.0)).after(1, first.hash)]
    >>> find_tampering(log), [str(found) for found in find_tampering(log[1:])]
    ([], ['row 1 was dropped'])
    """
    noted = list(witnesses)
    seen: dict[int, str] = {}
    wrong: list[Entry] = []  # rows whose hash does not fit their contents
    found: list[Tampering] = []
    expected, previous = 1, GENESIS
    for entry in entries:
        if entry.sequence > expected:
            found += _dropped(expected, entry.sequence - 1)
        fits = entry.expected_hash() == entry.hash
        if not fits:
            wrong.append(entry)
        elif (
            entry.sequence == expected
            and entry.previous != previous
            and not (wrong and wrong[-1].sequence == expected - 1)
        ):
            sentence = f"row {entry.sequence} does not follow row {expected - 1}, which was replaced"
            found.append(Tampering("replaced", expected - 1, sentence))
        expected, previous = entry.sequence + 1, entry.hash
        if any(witness.sequence == entry.sequence for witness in noted):
            seen[entry.sequence] = entry.hash
    found += _moved_or_changed(wrong)
    found += _against(noted, expected - 1, seen)
    return sorted(found, key=lambda one: one.sequence)


def _dropped(first: int, last: int) -> Iterator[Tampering]:
    what = f"row {first} was" if first == last else f"rows {first} to {last} were"
    yield Tampering("dropped", first, f"{what} dropped")


def _moved_or_changed(wrong: list[Entry]) -> Iterator[Tampering]:
    places = [entry.sequence for entry in wrong]
    for entry in wrong:
        home = next((place for place in places if entry.expected_hash(place) == entry.hash), None)
        if home is None:
            yield Tampering("changed", entry.sequence, f"row {entry.sequence} was changed")
        else:
            yield Tampering("reordered", entry.sequence, f"row {home} stands in the place of row {entry.sequence}")


def _against(witnesses: list[Witness], last: int, seen: dict[int, str]) -> Iterator[Tampering]:
    for witness in witnesses:
        if witness.sequence > last:
            for dropped in _dropped(last + 1, witness.sequence):
                yield Tampering(dropped.kind, dropped.sequence, f"{dropped.sentence} at the end, by {witness.where}")
        elif witness.sequence and seen.get(witness.sequence) != witness.hash:
            sentence = (
                f"row {witness.sequence} has not the hash in {witness.where}: it or rows before it were written anew"
            )
            yield Tampering("replaced", witness.sequence, sentence)


def _hash_of(covered: list[Any]) -> str:
    return hashlib.sha256(canonical(covered)).hexdigest()


def canonical(value: Any) -> bytes:
    """The same bytes for the same value, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def digest(salt: str, data: bytes) -> str:
    """The salted digest of an input or an answer: ``SHA-256(salt ‖ data)``."""
    return hashlib.sha256(bytes.fromhex(salt) + data).hexdigest()
