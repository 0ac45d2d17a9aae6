"""Labelled probes: what reviewers decided, as probes with the subjects they show, to calibrate on and to check a promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sql

from holue.gallery.subjects import UNKNOWN
from holue.live.protection import Rotation, turned_back
from holue.recognition.answer.identifications import ACCEPTED
from holue.recognition.risk.decisions import risk_columns
from holue.service.ledger.database import Database
from holue.service.ledger.reviewing.review_item import State
from holue.service.ledger.reviewing.review_offer import permanent_number
from holue.service.ledger.tables import ANSWERED, LABELLED, REVIEWS
from holue.service.risk_check import RiskCheck, Stratum, checked_risk
from holue.store.values import Float32Array, Float64Array, Int64Array, SubjectId

NOBODY = 0
"""In ``subjects``: nobody who was enrolled then; numbers of subjects begin at 1."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Probes and the numbers of the subjects they show, oldest first."""

    embeddings: Float32Array  # (n, d)
    concentration: Float64Array | None  # (n,) where every probe has one
    subjects: Int64Array  # (n,) NOBODY where nobody enrolled is shown
    time: Float64Array  # (n,) when they were decided

    def __len__(self) -> int:
        return len(self.subjects)

    def named(self, names: Mapping[int, SubjectId]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[Any]]:
        """Which probes show nobody or somebody in ``names``, and the ids of these (UNKNOWN for nobody).

        The others show subjects who have left since; whether they count as strangers now is not known.
        """
        known = np.array([number == NOBODY or number in names for number in self.subjects.tolist()], bool)
        ids = np.empty(int(known.sum()), object)
        ids[:] = [UNKNOWN if number == NOBODY else names[number] for number in self.subjects[known].tolist()]
        return known, ids


class LabelledProbes:
    """The labelled probes in a ledger; they come and go with the decisions about reviews."""

    def __init__(self, database: Database, *, rotation: Rotation | None = None) -> None:
        self._database, self._rotation = database, rotation

    def __len__(self) -> int:
        with self._database.reading() as connection:
            return int(connection.execute(sql.select(sql.func.count()).select_from(LABELLED)).scalar_one())

    def read(self, *, model: str | None = None, since: float = 0.0) -> Labelled:
        """All that were decided since a time, of one embedding model."""
        return self._read(_of_model(model) & (LABELLED.c.time >= since))

    def _read(self, where: sql.ColumnElement[bool], reviews: Container[int] | None = None) -> Labelled:
        query = (
            sql.select(
                LABELLED.c.review, REVIEWS.c.embedding, REVIEWS.c.concentration, LABELLED.c.subject, LABELLED.c.time
            )
            .join(REVIEWS, REVIEWS.c.number == LABELLED.c.review)
            .where(where)
            .order_by(LABELLED.c.time, LABELLED.c.review)
        )
        with self._database.reading() as connection:
            rows = [row for row in connection.execute(query) if reviews is None or row.review in reviews]
        vectors = [np.frombuffer(row.embedding, "<f4").astype(np.float32) for row in rows]
        kappa = [row.concentration for row in rows]
        return Labelled(
            turned_back(np.stack(vectors), self._rotation) if vectors else np.empty((0, 0), np.float32),
            None if not rows or None in kappa else np.array(kappa, np.float64),
            np.array([row.subject or NOBODY for row in rows], np.int64),
            np.array([row.time for row in rows], np.float64),
        )

    def sample(
        self, calibrations: Iterable[int | None] | None = None, *, model: str | None = None, since: float = 0.0
    ) -> Labelled:
        """Labelled probes that are like all probes that came, whether their answers were filtered or not.

        All filtered answers are reviewed, and only a share s of the others; so filtered ones are too many by 1/s. Taken are those
        under c in either kind, by the permanent number of the answer, where c is the smallest share there was, or the smallest
        number that is still undecided: a random sample of share c of all answers that were given since a time.
        """
        secret = self._database.secret()
        columns = (REVIEWS.c.number, REVIEWS.c.request_id, REVIEWS.c.probe, REVIEWS.c.share, REVIEWS.c.state)
        where: list[sql.ColumnElement[bool]] = [_of_model(model), REVIEWS.c.created >= since]
        if calibrations is not None:
            where.append(sql.func.coalesce(REVIEWS.c.calibration, 0).in_([number or 0 for number in calibrations]))
        with self._database.reading() as connection:
            rows = connection.execute(sql.select(*columns).where(*where)).all()
        place = {row.number: permanent_number(secret, row.request_id, row.probe) for row in rows}
        shares = [row.share for row in rows if row.share is not None]
        undecided = [place[row.number] for row in rows if row.state != State.DECIDED.value]
        below = min([*shares, *undecided], default=0.0) if shares else 0.0
        return self._read(_of_model(model), {row.number for row in rows if place[row.number] < below})

    def risk(
        self,
        calibration: int | None,
        *,
        risk: str = "error",
        promised: float | None = None,
        confidence: float = 0.95,
    ) -> RiskCheck:
        """What reviewers found among the answers that were given with a calibration, beside the risk that was promised.

        Counted are the sampled answers under the smallest permanent number that is still undecided: all of them are decided,
        so whether an item is hard does not matter for being counted.
        """
        sampled = (
            sql.select(REVIEWS.c.share, REVIEWS.c.sampled_at, REVIEWS.c.state, REVIEWS.c.decision, REVIEWS.c.subject)
            .add_columns(LABELLED.c.subject.label("shown"))
            .join(LABELLED, LABELLED.c.review == REVIEWS.c.number, isouter=True)
            .where(REVIEWS.c.sampled_at.is_not(None), sql.func.coalesce(REVIEWS.c.calibration, 0) == (calibration or 0))
        )
        population = sql.select(ANSWERED.c.share, ANSWERED.c.unfiltered).where(
            ANSWERED.c.calibration == (calibration or 0)
        )
        with self._database.reading() as connection:
            rows = connection.execute(sampled).all()
            answered = {float(share): int(count) for share, count in connection.execute(population)}
        undecided = [row.sampled_at for row in rows if row.state != State.DECIDED.value]
        complete = min(undecided, default=1.0)
        counted = [row for row in rows if row.sampled_at < complete]
        decided, wrong = Counter[float](), Counter[float]()
        for row in counted:
            decided[row.share] += 1
            wrong[row.share] += _is_wrong(risk, row.decision == ACCEPTED, row.subject, row.shown)
        strata = [Stratum(share, answered[share], decided[share], wrong[share]) for share in sorted(answered)]
        return checked_risk(strata, risk=risk, promised=promised, confidence=confidence, waiting=len(undecided))


def _of_model(model: str | None) -> sql.ColumnElement[bool]:
    return REVIEWS.c.model.is_(None) if model is None else REVIEWS.c.model == model


def _is_wrong(risk: str, accepted: bool, answered: int | None, shown: int | None) -> int:
    mated, taken, right = (np.array([fact]) for fact in (shown is not None, accepted, answered == shown))
    return int(risk_columns(risk, mated, taken, right)[1][0])
