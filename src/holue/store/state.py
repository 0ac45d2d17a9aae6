"""State: who is enrolled, as the verbs ask for it inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holue.store.edit import Touched
from holue.store.values import Subject, SubjectId


class State(Protocol):
    """The questions that verbs ask; each home answers them."""

    def known(self, ids: Sequence[SubjectId]) -> dict[SubjectId, Subject]:
        """Those of the ids that are enrolled."""

    def numbered(self, numbers: Sequence[int]) -> dict[int, Subject]:
        """Those of the numbers that are enrolled."""

    def any_id(self) -> SubjectId | None:
        """The id of some enrolled subject."""

    def samples_of(self, number: int) -> list[int]:
        """The samples of a subject, ascending."""

    def owners(self, samples: Sequence[int]) -> dict[int, int]:
        """The subjects of those samples that belong to one."""

    def next_numbers(self) -> tuple[int, int]:
        """The next subject number and the next sample number."""

    def last_version(self) -> int:
        """The newest version, with what this transaction has changed."""

    def touched(self, version: int) -> Touched:
        """What a change touched, as far as it was not erased."""

    def removed(self, ids: Sequence[SubjectId]) -> dict[SubjectId, list[int]]:
        """Numbers of subjects that are gone but not erased, by the id they had last."""

    def kept(self, numbers: Sequence[int]) -> set[int]:
        """Those of the numbers that are enrolled, or removed and not erased."""

    def expired(self, now: float) -> list[int]:
        """Numbers of subjects, enrolled or removed, whose ``retain_until`` has come."""
