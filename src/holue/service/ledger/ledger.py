"""Ledger: all that a service keeps beside one gallery, opened and closed together, and how an erasure reaches it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

import numpy as np
import sqlalchemy as sql

from holue.live.live_gallery import LiveGallery
from holue.live.protection import Rotation
from holue.service.ledger.audit.audit_log import AuditLog
from holue.service.ledger.audit.recovery import Recovery
from holue.service.ledger.database import FILE, FOLDER, Database
from holue.service.ledger.dismissals import Dismissals, forget_subjects
from holue.service.ledger.idempotency import Idempotency, empty_responses
from holue.service.ledger.images import Images, Of, delete_images
from holue.service.ledger.keys import Keys
from holue.service.ledger.measures import Measures, delete_measures
from holue.service.ledger.reviewing.labelled_probes import LabelledProbes
from holue.service.ledger.reviewing.review_offer import embedding_digest
from holue.service.ledger.reviewing.reviews import TABLES, Reviews, erase_subjects
from holue.service.ledger.strangers import Strangers, erase_embeddings
from holue.service.ledger.tables import IDEMPOTENCY, STRANGERS
from holue.store.values import Float32Array, Problem, Receipt, SubjectId


class Ledger:
    """Made by :meth:`open`; a context manager.

    >>> with Ledger.open(":memory:") as ledger:
    ...     ledger.keys.first().key.role.value, ledger.problems()
    ('admin', [])
    """

    def __init__(
        self,
        database: Database,
        *,
        review_share: float,
        review_people: int,
        keep_strangers: float | None,
        rotation: Rotation | None,
    ) -> None:
        self.database = database
        self.keys = Keys(database)
        self.audit_log = AuditLog(database)
        self.recovery = Recovery(database, self.audit_log)
        self.reviews = Reviews(database, share=review_share, people=review_people, rotation=rotation)
        self.labelled_probes = LabelledProbes(database, rotation=rotation)
        self.strangers = Strangers(database, keep=keep_strangers, rotation=rotation)
        self.idempotency = Idempotency(database)
        self.images = Images(database, rotation=rotation)
        self.measures = Measures(database)
        self.dismissals = Dismissals(database)

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        *,
        review_share: float = 0.0,
        review_people: int = 1,
        keep_strangers: float | None = None,
        rotation: Rotation | None = None,
    ) -> Self:
        """The ledger of a gallery: a directory, a ``postgresql://`` URL or ``":memory:"``; made where there is none.

        ``review_share`` of the answers that are not filtered are reviewed too; ``review_people`` of different keys must agree;
        strangers are kept for ``keep_strangers`` seconds, or not at all. ``rotation`` is that of a protected gallery
        (``gallery.rotation``): probes are stored turned by it too, or they would give it away.
        """
        database = Database.of_gallery(place)
        try:
            return cls(
                database, review_share=review_share, review_people=review_people, keep_strangers=keep_strangers,
                rotation=rotation,
            )  # fmt: skip
        except BaseException:
            database.close()
            raise

    def erase(
        self, numbers: Sequence[int], embeddings: Iterable[Float32Array] = (), *, samples: Sequence[int] = ()
    ) -> int:
        """Delete all that concerns erased subjects, from the files too; returns the number of reviews that went.

        ``embeddings`` are the subjects' samples, as they are stored: probes with the same bytes go as well. ``samples`` are the
        numbers of these samples: their pictures and measures go.
        """
        given = [np.ascontiguousarray(one, "<f4") for one in embeddings]
        secret = self.database.secret()
        digests = [embedding_digest(secret, one) for one in given]

        def delete(connection: sql.Connection) -> int:
            gone = erase_subjects(connection, list(numbers), digests)
            erase_embeddings(connection, [one.tobytes() for one in given])
            delete_images(connection, Of.SAMPLE, samples)
            delete_measures(connection, samples)
            forget_subjects(connection, list(numbers))
            empty_responses(connection)
            return gone

        gone = self.database.writing(delete)
        self.database.scrub([*TABLES, STRANGERS, IDEMPOTENCY], whole=True)
        return gone

    def problems(self) -> list[Problem]:
        """Damage of the file, and rows of the audit log that are not as they were written."""
        name = f"{FOLDER}/{FILE}"
        damaged = [Problem(name, what) for what in self.database.problems()]
        return damaged or [Problem(name, f"audit log: {found}") for found in self.audit_log.verify()]

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def erase_everywhere(
    gallery: LiveGallery,
    ledger: Ledger,
    ids: Iterable[SubjectId] = (),
    *,
    numbers: Iterable[int] = (),
    by: str | None = None,
) -> Receipt:
    """Erase subjects from the ledger, then from the gallery, whose receipt tells of both where they are in one home.

    An interruption leaves subjects who are still enrolled and have nothing left in the ledger: erase again.
    """
    targets = gallery.store.erasable(ids, numbers=numbers)
    enrolled = [
        subject for number in targets for subject in gallery.subjects(number - 1, 1) if subject.number == number
    ]
    samples = [sample for subject in enrolled for sample in gallery.store.samples(subject.id)]
    ledger.erase(targets, [sample.embedding for sample in samples], samples=[sample.number for sample in samples])
    return gallery.erase(numbers=targets, by=by)
