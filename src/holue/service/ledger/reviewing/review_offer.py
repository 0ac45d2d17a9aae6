"""Review offer: an answer that may have to be reviewed, and whether it is."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holue.recognition.answer.identifications import ACCEPTED, FILTERED, REJECTED, Identification
from holue.service.ledger.reviewing.review_item import ReviewCandidate, without_names
from holue.store.values import Float32Array, SubjectId

ANSWER_FIELDS = ("score", "p_subject", "p_unknown", "calibrated", "quality", "uncertainty", "reason")


@dataclass(frozen=True, eq=False)
class Offer:
    """An answer with its probe and its versions; subjects are named by number."""

    request_id: str
    probe: int  # its place in the request
    embedding: Float32Array
    concentration: float | None
    gallery_version: int
    calibration: int | None
    model: str | None
    decision: str
    subject: int | None
    candidates: tuple[ReviewCandidate, ...]
    answer: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        answer: Identification,
        embedding: object,
        concentration: float | None,
        *,
        number_of: Callable[[SubjectId], int | None],
        request_id: str,
        probe: int,
        gallery_version: int,
        calibration: int | None,
        model: str | None,
    ) -> Offer:
        """An answer of a living gallery; ``number_of`` gives the number of a subject in the version that answered."""
        plain = answer.to_dict()
        names = [candidate["subject"] for candidate in plain["candidates"]]
        numbers = [number_of(name) for name in names]
        return cls(
            request_id, probe, np.asarray(embedding, np.float32), concentration, gallery_version, calibration, model,
            answer.decision,
            None if plain["subject"] is None else number_of(plain["subject"]),
            tuple(
                ReviewCandidate(number, candidate["score"], candidate["probability"])
                for number, candidate in zip(numbers, plain["candidates"])
                if number is not None
            ),
            {**{name: plain[name] for name in ANSWER_FIELDS}, "reason": without_names(answer.reason, names)},
        )  # fmt: skip

    @property
    def filtered(self) -> bool:
        """Whether nothing was decided."""
        return self.decision == FILTERED

    @property
    def automatic(self) -> bool:
        """Whether it was decided; an incomplete answer is neither decided nor for people to decide."""
        return self.decision in (ACCEPTED, REJECTED)

    def information(self) -> float:
        """What can be learned from a decision: the entropy of {best candidate, another, nobody}, in nats; 0 where it is clear.

        It is largest at the operating point, where the best candidate and nobody are equally probable.
        """
        best, nobody = float(self.answer["p_subject"]), float(self.answer["p_unknown"])
        shares = np.clip([best, nobody, 1.0 - best - nobody], 1e-300, 1.0)
        return float(-np.sum(shares * np.log(shares)))


def permanent_number(secret: bytes, request_id: str, probe: int) -> float:
    """A number in [0, 1) that belongs to an answer: random without the secret, and always the same with it.

    Answers with a number under the share s are a random sample of share s. Those under a smaller c are one of share c, whatever
    s was.

    >>> permanent_number(b"secret", "request-1", 0) == permanent_number(b"secret", "request-1", 0)
    True
    """
    digest = hmac.digest(secret, f"{probe}:{request_id}".encode("utf-8", "surrogatepass"), hashlib.sha256)
    return int.from_bytes(digest[:8]) / 2**64


def embedding_digest(secret: bytes, embedding: Float32Array) -> str:
    """Names the same probe again; without the secret it says nothing about the embedding."""
    return hmac.digest(secret, np.ascontiguousarray(embedding, "<f4").tobytes(), hashlib.sha256).hex()
