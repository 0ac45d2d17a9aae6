"""Missing: what of a version could not be read, so that its answers are incomplete."""

from __future__ import annotations

from dataclasses import dataclass

from holue.store.protocol import Store
from holue.store.values import Problem


@dataclass(frozen=True)
class Missing:
    """The numbers of the subjects that are missing, wholly or in part, and the damage that was found at opening.

    >>> bool(Missing())
    False
    >>> Missing((3, 7), (Problem("segments/00000001.segment", "is cut off", (3, 7)),), 40).reason
    'incomplete: 2 of 40 enrolled subjects could not be read'
    """

    subjects: tuple[int, ...] = ()
    damage: tuple[Problem, ...] = ()
    n_enrolled: int = 0

    @classmethod
    def of(cls, store: Store, version: int) -> Missing:
        """What is missing of a version; nothing where the store is whole."""
        if not store.damage:
            return cls()
        view = store.at(version)
        return cls(view.missing_subjects, store.damage, len(view.names()))

    def __bool__(self) -> bool:
        return bool(self.damage)

    @property
    def reason(self) -> str:
        """Why an answer is incomplete."""
        if self.subjects:
            return f"incomplete: {len(self.subjects)} of {self.n_enrolled} enrolled subjects could not be read"
        first = self.damage[0]
        return f"incomplete: {first.file} {first.what}"
