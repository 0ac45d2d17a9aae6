"""Roles: what the holder of a key may do, in one table.

No program that runs by itself needs ``admin``: identification needs ``operator``, enrolment, retention and snapshots need
``enroller``, monitoring needs ``viewer``. Whether new calibrations answer and who gets a key is decided by an ``admin``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from holue.errors import InvalidParameterError, NotPermittedError


class Permission(Enum):
    """One thing that can be allowed."""

    VIEW = "see galleries, subjects, calibrations and numbers"
    IDENTIFY = "identify and verify probes"
    ENROLL = "enrol, change, merge, split and remove subjects, and undo it"
    ERASE = "erase subjects for good"
    SNAPSHOT = "take snapshots"
    REVIEW = "see reviews and strangers with their probes, and decide them"
    CALIBRATE = "make calibrations that do not answer yet, and preview them"
    ACTIVATE = "choose the calibration that answers"
    AUDIT = "audit a gallery: who is enrolled twice or under a wrong name"
    READ_LOG = "read, verify and export the audit log"
    MANAGE_GALLERIES = "create galleries and change their settings"
    MANAGE_KEYS = "create, rotate and revoke keys"


class Role(Enum):
    """A set of permissions with a name."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ENROLLER = "enroller"
    REVIEWER = "reviewer"
    AUDITOR = "auditor"
    ADMIN = "admin"

    @classmethod
    def parse(cls, name: str) -> Role:
        """The role of a name."""
        try:
            return cls(name)
        except ValueError as error:
            raise InvalidParameterError(
                f"role must be one of {', '.join(role.value for role in cls)}; got {name!r}"
            ) from error

    @property
    def permissions(self) -> frozenset[Permission]:
        """What this role may do."""
        return PERMISSIONS[self]

    def require(self, permission: Permission) -> None:
        """An error where the role lacks a permission.

        >>> Role.VIEWER.require(Permission.IDENTIFY)
        Traceback (most recent call last):
        holue.errors.NotPermittedError: a viewer may not identify and verify probes; use a key with the role operator or admin
        """
        if permission not in self.permissions:
            able = " or ".join(role.value for role in Role if permission in role.permissions)
            article = "an" if self.value[0] in "aeo" else "a"
            raise NotPermittedError(
                f"{article} {self.value} may not {permission.value}; use a key with the role {able}"
            )


PERMISSIONS: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        Role.VIEWER: frozenset({Permission.VIEW}),
        Role.OPERATOR: frozenset({Permission.VIEW, Permission.IDENTIFY}),
        Role.ENROLLER: frozenset({Permission.VIEW, Permission.ENROLL, Permission.ERASE, Permission.SNAPSHOT}),
        Role.REVIEWER: frozenset({Permission.VIEW, Permission.REVIEW, Permission.CALIBRATE}),
        Role.AUDITOR: frozenset({Permission.VIEW, Permission.AUDIT, Permission.READ_LOG}),
        Role.ADMIN: frozenset(Permission),
    }
)
"""The whole table."""
