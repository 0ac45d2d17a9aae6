from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holue.errors import (
    ConflictError,
    InvalidKeyError,
    InvalidParameterError,
    NotFoundError,
    NotPermittedError,
    TooManyWrongKeysError,
)
from holue.service.ledger.database import Database
from holue.service.ledger.keys import Keys, NewKey
from holue.service.roles import PERMISSIONS, Permission, Role
from holue.service.wrong_keys import FORGET_AFTER, FREE, WrongKeys


def test_a_key_is_known_again_with_its_role_and_holder(database: Database) -> None:
    keys = Keys(database)
    made = keys.create(Role.REVIEWER, gallery="door", holder="Ann", by="cli")
    assert keys.check(made.text) == made.key
    assert (made.key.role, made.key.gallery, made.key.holder) == (Role.REVIEWER, "door", "Ann")


def test_the_secret_is_nowhere_in_the_files(file_database: Database) -> None:
    made = Keys(file_database).create(Role.VIEWER)
    secret = made.text.rsplit("_", 1)[1].encode()
    assert file_database.file is not None
    for path in file_database.file.parent.iterdir():
        assert secret not in path.read_bytes()
    assert made.text not in repr(made)


@pytest.mark.parametrize("change", ["last digit", "no such prefix", "empty", "not a key", "not text", "upper case"])
def test_a_wrong_key_is_refused_with_the_same_words(database: Database, change: str) -> None:
    keys = Keys(database)
    text = keys.create(Role.VIEWER).text
    wrong = {
        "last digit": text[:-1] + ("0" if text[-1] != "0" else "1"),
        "no such prefix": f"hk_{'0' * 12}_{'0' * 64}",
        "empty": "",
        "not a key": "' OR 1=1 --",
        "not text": "hk_\udcff",
        "upper case": text.upper(),
    }[change]
    with pytest.raises(InvalidKeyError) as error:
        keys.check(wrong)
    assert str(error.value) == "the key is not valid; ask an admin of this service for one"


def test_a_revocation_holds_at_the_next_check_of_another_process(open_ledger: Callable[[], Database]) -> None:
    here, there = Keys(open_ledger()), Keys(open_ledger())
    made = here.create(Role.OPERATOR)
    assert there.check(made.text) == made.key
    here.revoke(made.key.prefix)
    with pytest.raises(InvalidKeyError):
        there.check(made.text)


def test_a_key_expires(database: Database) -> None:
    keys = Keys(database)
    made = keys.create(Role.OPERATOR, expires=200.0, now=100.0)
    assert keys.check(made.text, now=199.0) == made.key
    with pytest.raises(InvalidKeyError):
        keys.check(made.text, now=200.0)
    with pytest.raises(InvalidParameterError, match="expires"):
        keys.create(Role.OPERATOR, expires=50.0, now=100.0)


def test_a_rotated_key_is_valid_for_the_overlap_and_the_new_one_from_now_on(database: Database) -> None:
    keys = Keys(database)
    old = keys.create(Role.ENROLLER, gallery="door", holder="import", now=0.0)
    new = keys.rotate(old.key.prefix, overlap=60.0, now=100.0)
    assert (new.key.role, new.key.gallery, new.key.holder) == (Role.ENROLLER, "door", "import")
    assert new.key.replaces == old.key.prefix
    assert keys.check(new.text, now=100.0) == keys.get(new.key.prefix)
    assert keys.check(old.text, now=159.0).prefix == old.key.prefix
    with pytest.raises(InvalidKeyError):
        keys.check(old.text, now=160.0)
    with pytest.raises(ConflictError):
        keys.rotate(old.key.prefix, now=161.0)


def test_rotation_does_not_lengthen_a_life(database: Database) -> None:
    keys = Keys(database)
    old = keys.create(Role.ENROLLER, expires=120.0, now=0.0)
    new = keys.rotate(old.key.prefix, overlap=1000.0, now=100.0)
    assert (keys.get(old.key.prefix).expires, new.key.expires) == (120.0, 120.0)


def test_one_first_key_is_made_whichever_process_is_first(open_ledger: Callable[[], Database]) -> None:
    ledgers = [Keys(open_ledger()) for _ in range(4)]
    made: list[NewKey | None] = []
    threads = [threading.Thread(target=lambda keys=keys: made.append(keys.first())) for keys in ledgers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = [one for one in made if one is not None]
    assert len(made) == 4
    assert len(first) == 1
    assert ledgers[0].check(first[0].text).role is Role.ADMIN


def test_the_last_admin_cannot_be_revoked(database: Database) -> None:
    keys = Keys(database)
    first = keys.first()
    assert first is not None
    keys.create(Role.ADMIN, gallery="door")
    keys.create(Role.ADMIN, expires=1e12)
    with pytest.raises(ConflictError, match="last admin"):
        keys.revoke(first.key.prefix)
    second = keys.create(Role.ADMIN)
    keys.revoke(first.key.prefix)
    assert [key.prefix for key in keys.all() if key.revoked] == [first.key.prefix]
    assert keys.check(second.text) == second.key


def test_what_is_not_there_is_not_found(database: Database) -> None:
    with pytest.raises(NotFoundError):
        Keys(database).get("0" * 12)
    with pytest.raises(NotFoundError):
        Keys(database).revoke("0" * 12)


def test_a_key_for_one_gallery_opens_no_other(file_database: Database) -> None:
    key = Keys(file_database).create(Role.ADMIN, gallery="door").key
    key.require(Permission.ENROLL, "door")
    for other in ("gate", None):
        with pytest.raises(NotPermittedError, match="door"):
            key.require(Permission.ENROLL, other)
    Keys(file_database).create(Role.ADMIN).key.require(Permission.ENROLL, "gate")


def test_every_role_has_a_row_and_every_permission_a_holder_besides_what_only_admins_decide() -> None:
    assert set(PERMISSIONS) == set(Role)
    assert PERMISSIONS[Role.ADMIN] == frozenset(Permission)
    others = frozenset().union(*(PERMISSIONS[role] for role in Role if role is not Role.ADMIN))
    assert frozenset(Permission) - others == {Permission.ACTIVATE, Permission.MANAGE_GALLERIES, Permission.MANAGE_KEYS}
    assert all(Permission.VIEW in allowed for allowed in PERMISSIONS.values())


def test_a_role_that_does_not_exist_is_named() -> None:
    assert Role.parse("auditor") is Role.AUDITOR
    with pytest.raises(InvalidParameterError, match="'root'"):
        Role.parse("root")


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_each_further_wrong_key_doubles_the_wait() -> None:
    clock = Clock()
    wrong = WrongKeys(clock)
    waits = []
    for _ in range(FREE + 10):
        wrong.note("192.0.2.7")
        try:
            wrong.check("192.0.2.7")
            waits.append(0.0)
        except TooManyWrongKeysError as error:
            waits.append(error.retry_after)
            clock.time += error.retry_after
            wrong.check("192.0.2.7")  # the wait is over
    assert waits == [0.0] * FREE + [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    wrong.check("192.0.2.8")
    clock.time += FORGET_AFTER + 1
    wrong.note("192.0.2.7")
    wrong.check("192.0.2.7")


def test_a_network_of_ipv6_counts_as_one_address() -> None:
    wrong = WrongKeys(Clock())
    for last in range(FREE + 1):
        wrong.note(f"2001:db8::{last:x}")
    with pytest.raises(TooManyWrongKeysError):
        wrong.check("2001:db8::ffff")
    wrong.check("2001:db8:0:1::1")
    for _ in range(FREE + 1):
        wrong.note("::ffff:192.0.2.7")
    with pytest.raises(TooManyWrongKeysError):
        wrong.check("192.0.2.7")


@given(st.lists(st.text(max_size=200), max_size=60))
def test_memory_for_wrong_keys_is_bounded(addresses: list[str]) -> None:
    wrong = WrongKeys(Clock(), addresses=10)
    for address in addresses:
        wrong.note(address)
        wrong.check(address) if len(addresses) <= FREE else None
    assert len(wrong) <= 10


def test_the_page_shows_the_table_of_roles() -> None:
    page = (Path(__file__).parents[2] / "docs" / "keys-and-roles.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    roles = [Role.parse(name) for name in rows[0][1:]]
    shown = {row[0]: {role for role, mark in zip(roles, row[1:]) if mark} for row in rows[1:]}
    assert shown == {one.value: {role for role in Role if one in role.permissions} for one in Permission}
