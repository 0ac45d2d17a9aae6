"""Names: which id each subject number has in the gallery that answers now."""

from __future__ import annotations

import numpy as np

from holue.gallery.subjects import Subjects
from holue.store.values import Int64Array, SubjectId


class Names:
    """Ids by number: the arrays of the gallery as it was built, and what has changed since, which is small.

    >>> names = Names(np.array([1, 4]), np.array(["ann", "bob"]))
    >>> names.set(4, "robert")
    >>> names.get(1), names.get(4), names.get(2)
    ('ann', 'robert', None)
    """

    def __init__(self, numbers: Int64Array, subjects: Subjects) -> None:
        self._numbers, self._subjects = numbers, subjects
        self._changed: dict[int, SubjectId | None] = {}

    def get(self, number: int) -> SubjectId | None:
        """The id of a number, or None."""
        if number in self._changed:
            return self._changed[number]
        place = int(np.searchsorted(self._numbers, number))
        if place == len(self._numbers) or self._numbers[place] != number:
            return None
        found: SubjectId = self._subjects[place].item()
        return found

    def set(self, number: int, subject: SubjectId | None) -> None:
        """Another id for a number; None where the subject has left."""
        self._changed[number] = subject
