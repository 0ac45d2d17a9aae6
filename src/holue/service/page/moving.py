"""Moving samples from one subject to another, and how a change is told with a way to undo it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from holue.errors import InvalidParameterError
from holue.service.galleries.opened import Opened
from holue.service.page.rendering import Message
from holue.service.page.screens import address_of
from holue.store.values import Subject, SubjectId


def move_samples(opened: Opened, found: Subject, samples: Sequence[int], to: str, *, by: str) -> tuple[int, ...]:
    """Samples of a subject go to another one, or to a new one of this name; the versions that this made.

    The store splits and merges. To an enrolled subject it takes both: an interruption between them leaves the samples under a
    name that says so, and loses none.
    """
    live = opened.live
    target = live.subject(opened.subject_id(to))
    if target is None:
        return (live.split(found.id, samples, new=opened.subject_id(to), by=by),)
    if target.number == found.number:
        raise InvalidParameterError(f"the samples are {found.id}'s already; name another subject")
    if len(set(samples)) == len(live.samples(found.id)):
        return (live.merge([found.id], into=target.id, by=by),)
    between: SubjectId = (
        -(2**62) - secrets.randbits(60)
        if isinstance(found.id, int)
        else f"{found.id} on the way to {to} {secrets.token_hex(4)}"
    )
    return live.split(found.id, samples, new=between, by=by), live.merge([between], into=target.id, by=by)


def undoable(gallery: str, text: str, versions: Sequence[int], *, to: str = "subjects") -> Message:
    """What was done, with a button that takes it back and leads to a screen."""
    fields: list[tuple[str, str | int]] = [*(("version", version) for version in versions), ("to", to)]
    return Message(text, undo=address_of(gallery, "undo"), fields=fields)
