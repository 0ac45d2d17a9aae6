"""Enrolling: files become samples of a subject, with their measures and, where the gallery keeps them, their pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holue.service.galleries.opened import Opened
from holue.service.galleries.sent_files import SentFiles
from holue.service.ledger.images import Of
from holue.store.values import Enrolled, Subject


def enrol_files(
    opened: Opened,
    subject: str,
    sent: SentFiles,
    *,
    origins: Sequence[str],
    by: str,
    check: Callable[[Subject], None] = lambda found: None,
) -> tuple[str, Enrolled]:
    """Enrol a new subject or give an enrolled one more samples; what was done, in a word, and the new samples.

    ``origins`` are those of the files; ``check`` may refuse the subject as it is now.
    """
    embedded = sent.embedded
    with opened.changing:
        found = opened.live.subject(opened.subject_id(subject))
        if found is not None:
            check(found)
        verb = opened.live.enroll if found is None else opened.live.add_samples
        ids = [opened.subject_id(subject) if found is None else found.id] * len(embedded.rows)
        done = verb(
            embedded.rows, ids, concentration=embedded.concentration, origin=[origins[place] for place in embedded.file],
            medium=sent.medium or "", model=opened.live.model, by=by,
        )  # fmt: skip
        numbers = dict(enumerate(done.samples.tolist()))
        opened.ledger.measures.put(
            {numbers[row]: measures for row in numbers if (measures := sent.measures(row)) is not None}
        )
        if sent.kind == "image" and opened.ledger.images.kept:
            opened.ledger.images.put(Of.SAMPLE, {number: sent.picture(row) for row, number in numbers.items()})
    return "enroll" if found is None else "add-samples", done
