"""Answers: the documents of a service as the arrays that a local gallery gives, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from holue.gallery.subjects import UNKNOWN
from holue.recognition.answer.identifications import FILTERED, Identifications

FILTERED_SENTENCE = "filtered: "
"""Begins a reason that the service adds to those of the recogniser."""


def identifications_of(documents: list[dict[str, Any]]) -> Identifications:
    """The answers of a service; its numbers travel as JSON, which keeps every bit of a float64."""
    subject = np.empty(len(documents), object)
    subject[:] = [_subject(each) for each in documents]
    names = np.empty((len(documents), len(documents[0]["candidates"]) if documents else 0), object)
    for row, each in enumerate(documents):
        names[row] = [candidate["subject"] for candidate in each["candidates"]]

    def column(name: str) -> Any:
        return np.array([np.nan if each[name] is None else each[name] for each in documents], np.float64)

    def of_candidates(name: str) -> Any:
        rows = [[candidate[name] for candidate in each["candidates"]] for each in documents]
        return np.array(rows, np.float64).reshape(names.shape)

    return Identifications(
        subject=subject,
        decision=np.array([each["decision"] for each in documents], np.str_),
        score=column("score"),
        p_subject=column("p_subject"),
        p_unknown=column("p_unknown"),
        calibrated=np.array([each["calibrated"] for each in documents], bool),
        quality=column("quality"),
        uncertainty=column("uncertainty"),
        candidate_subjects=_as_ids(names),
        candidate_scores=of_candidates("score"),
        candidate_probabilities=of_candidates("probability"),
        model_p_unknown=column("model_p_unknown"),
        model_candidate_probabilities=of_candidates("model_probability"),
        reason=np.array([_reason(each) for each in documents], np.str_),
    )


def _subject(document: dict[str, Any]) -> Any:
    if document["decision"] == "rejected":
        return UNKNOWN
    return document["subject"]


def _reason(document: dict[str, Any]) -> str:
    own = [each for each in document["reasons"] if not each.startswith(FILTERED_SENTENCE)]
    return own[0] if own and document["decision"] in ("accepted", "rejected", FILTERED, "incomplete") else ""


def _as_ids(names: Any) -> Any:
    kinds = {type(name) for name in names.ravel().tolist()}
    return names.astype(np.int64) if kinds == {int} else names.astype(np.str_) if kinds == {str} else names
