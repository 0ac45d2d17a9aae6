"""Answers: what a scan found, as the documents that the service sends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from holue.gallery.embeddings import normalize
from holue.live.version import GalleryVersion
from holue.recognition.answer.identifications import FILTERED, Identifications
from holue.recognition.state.state import State
from holue.service.galleries.opened import Opened
from holue.service.galleries.probes import Probes


def risk_of(version: GalleryVersion) -> dict[str, Any]:
    """What is promised about the answers of a version, and why it does not hold where it does not."""
    state = version.state
    if state is None or state.operating_point is None:
        return _risk(None, None, None, ["the gallery is not calibrated"])
    why_not = [str(doubt) for doubt in version.doubts()]
    certificate, point = state.certificate, state.operating_point
    if certificate is not None:
        if version.settings.filter_below is not None:
            why_not.append("the filter threshold was set by hand in place of the certified one")
        return _risk(certificate.risk, certificate.target_level, certificate.confidence_level, why_not)
    if point.target_fpir is None:
        return _risk(None, None, None, ["the threshold was given, so that no rate is promised", *why_not])
    return _risk("fpir", point.target_fpir, None, why_not)


def _risk(kind: str | None, target: float | None, confidence: float | None, why_not: list[str]) -> dict[str, Any]:
    return {"kind": kind, "target": target, "confidence": confidence, "valid": not why_not, "why_not": why_not}


def answer_documents(
    opened: Opened, version: GalleryVersion, probes: Probes, answers: Identifications, request_ids: Sequence[str]
) -> list[dict[str, Any]]:
    """One document for each probe; decisions, names and numbers are those of ``holue.open``'s answers."""
    directions = normalize(probes.rows, field="probes")
    shared = {
        "risk": risk_of(version),
        "gallery_version": version.version,
        "model": version.settings.embedding_model,
        "calibration": version.calibration,
    }
    columns = answers.to_dict()
    samples = opened.best_samples(
        version, [[each["subject"] for each in candidates] for candidates in columns["candidates"]], directions
    )
    return [
        {
            "decision": columns["decision"][row],
            "subject": columns["subject"][row],
            "candidates": [
                {
                    "subject": candidate["subject"],
                    "probability": candidate["probability"],
                    "score": candidate["score"],
                    "model_probability": candidate["model_probability"],
                    "sample": sample,
                }
                for candidate, sample in zip(columns["candidates"][row], samples[row])
            ],
            "uncertainty": finite(columns["uncertainty"][row]),
            "reasons": reasons(version, columns["decision"][row], columns["reason"][row]),
            **shared,
            "request_id": request_ids[row],
            "review_id": None,
            "score": columns["score"][row],
            "p_subject": columns["p_subject"][row],
            "p_unknown": columns["p_unknown"][row],
            "calibrated": columns["calibrated"][row],
            "quality": finite(columns["quality"][row]),
            "model_p_unknown": columns["model_p_unknown"][row],
        }
        for row in range(len(answers))
    ]


def with_places(documents: list[dict[str, Any]], probes: Probes) -> dict[str, Any]:
    """The answers of a request; where faces or speech were looked for, also where they are, and the files without any."""
    sent = probes.files
    if sent is not None and sent.embedded.faces is not None:
        for each, rows in zip(documents, probes.of_file):
            each["faces"] = [sent.face(row) for row in rows]
        return {"answers": documents, "without_face": sent.without_face}
    if sent is not None and sent.embedded.windows is not None:
        for each, rows in zip(documents, probes.of_file):
            each["windows"] = [sent.window(row) for row in rows]
        return {"answers": documents, "without_speech": sent.without_speech}
    return {"answers": documents}


def reasons(version: GalleryVersion, decision: str, sentence: str) -> list[str]:
    """Why an answer is uncertain, and that it was filtered."""
    found = [sentence] if sentence else []
    if decision == FILTERED:
        state: State | None = version.state
        assert state is not None
        below = state.filter_threshold(version.settings.filter_below)
        found.append(f"filtered: the quality is below {below:.6g}")
    return found


def verification_document(
    opened: Opened, version: GalleryVersion, subject: Any, probes: Probes, answers: Identifications, request_id: str
) -> dict[str, Any]:
    """Whether the one probe shows a subject: it must be accepted, and as this subject and no other."""
    answer = answers[0]
    direction = normalize(probes.rows, field="probe")[0]
    moment = version.moment
    found = next((candidate for candidate in answer.candidates if candidate.subject == subject), None)
    score = _score(version, subject, probes) if found is None else found.score
    why = reasons(version, answer.decision, answer.reason)
    decision = answer.decision
    if decision == "accepted" and answer.subject != subject:
        decision = "rejected"
        why.insert(0, "another subject matches better")
    elif decision == "rejected":
        why.insert(0, f"the score {score:.4f} is below the threshold")
    return {
        "decision": decision,
        "subject": subject,
        "score": score,
        "threshold": moment.state.point.threshold,
        "probability": None if found is None else found.probability,
        "uncertainty": finite(answer.uncertainty),
        "reasons": why,
        "risk": risk_of(version),
        "sample": opened.best_sample(version, subject, direction),
        "gallery_version": version.version,
        "model": version.settings.embedding_model,
        "calibration": version.calibration,
        "request_id": request_id,
    }


def _score(version: GalleryVersion, subject: Any, probes: Probes) -> float:
    moment = version.moment
    template = moment.search.rows(moment.search.index_of(np.array([subject])))[0]
    return float(template @ moment.probes(probes.rows).directions[0])


def finite(number: float) -> float | None:
    """The number, or None where JSON has none for it."""
    return float(number) if math.isfinite(number) else None
