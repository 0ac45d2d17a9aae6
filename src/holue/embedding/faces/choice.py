"""Choice: which faces of a photograph are wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holue.embedding.faces.face import Face, listed
from holue.errors import InvalidInputError, InvalidParameterError

CHOICES = ("one", "largest", "central", "all")


class FaceChoiceError(InvalidInputError):
    """A photograph with several faces where one is meant, or without the face that was asked for; ``faces`` are those found."""

    def __init__(self, text: str, origin: str, faces: Sequence[Face]) -> None:
        super().__init__(text)
        self.origin, self.faces = origin, tuple(faces)


def as_choice(which: str | int) -> str | int:
    """One of ``CHOICES``, or the number of a face from the left, counted from 1.

    >>> as_choice("largest"), as_choice("2")
    ('largest', 2)
    """
    text = str(which)
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    if text not in CHOICES:
        raise InvalidParameterError(
            f"which must be {', '.join(CHOICES)} or the number of a face from the left, from 1, got {text!r}"
        )
    return text


def chosen(faces: Sequence[Face], which: str | int, shape: tuple[int, int], origin: str) -> list[int]:
    """The places in ``faces`` of those that are wanted, in a photograph of ``shape`` (height, width) with at least one face.

    ``one`` refuses a photograph with several faces: for enrolment it must be plain whose face it is.
    """
    if which == "all":
        return list(range(len(faces)))
    if isinstance(which, int):
        if which > len(faces):
            raise FaceChoiceError(
                f"{origin}: face {which} was asked for, the photograph holds {len(faces)} ({listed(faces)}); ask for another",
                origin,
                faces,
            )
        return [which - 1]
    if which == "largest":
        return [int(np.argmax([face.area for face in faces]))]
    if which == "central":
        middle = np.array([shape[1], shape[0]]) / 2
        return [int(np.argmin([np.linalg.norm(face.centre - middle) for face in faces]))]
    if len(faces) > 1:
        raise FaceChoiceError(
            f"{origin}: {len(faces)} faces ({listed(faces)}); say which one is meant with "
            "which='largest', which='central' or which=1; which='all' takes each of them as a probe",
            origin,
            faces,
        )
    return [0]
