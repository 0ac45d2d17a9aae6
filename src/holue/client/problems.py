"""Problems: what a service refuses, raised as the errors that a local gallery raises."""

from __future__ import annotations

from typing import Any

from holue import errors as tree
from holue.recognition.risk.certificate import CannotCertifyError


class ServiceError(tree.HolueError):
    """The service refused or failed; ``status`` is HTTP's, ``document`` the whole problem."""

    def __init__(self, message: str, status: int, document: dict[str, Any]) -> None:
        super().__init__(message)
        self.status, self.document = status, document


KINDS: dict[str, type[tree.HolueError]] = {
    "invalid-embeddings": tree.InvalidEmbeddingsError,
    "wrong-dimension": tree.InvalidEmbeddingsError,
    "invalid-concentration": tree.InvalidConcentrationError,
    "invalid-subjects": tree.InvalidSubjectsError,
    "invalid-parameter": tree.InvalidParameterError,
    "gallery-too-small": tree.GalleryTooSmallError,
    "calibration-data": tree.CalibrationDataError,
    "unreachable-threshold": tree.UnreachableThresholdError,
    "invalid-file": tree.InvalidFileError,
    "invalid-input": tree.InvalidInputError,
    "not-found": tree.NotFoundError,
    "conflict": tree.ConflictError,
    "invalid-key": tree.InvalidKeyError,
    "no-key": tree.InvalidKeyError,
    "not-permitted": tree.NotPermittedError,
    "not-calibrated": tree.NotCalibratedError,
    "store-unavailable": tree.StoreUnavailableError,
    "damaged-store": tree.CorruptStoreError,
    "erasure-incomplete": tree.ErasureIncompleteError,
}
"""Kinds of problems and the errors they are here; all others are a :class:`ServiceError`."""


def error_of(status: int, document: dict[str, Any]) -> tree.HolueError:
    """The error that a problem document tells of.

    >>> error_of(422, {"type": "urn:holue:problem:invalid-embeddings", "detail": "row 0 is zero"})
    InvalidEmbeddingsError('row 0 is zero')

    The way out that the document names is part of the message, as it is in the errors of a local gallery.
    """
    kind = str(document.get("type", "")).rpartition(":")[2]
    detail = str(document.get("detail") or f"the service answered {status}")
    ways_out = [way_out for way_out in _ways_out(document) if way_out not in detail]
    if ways_out:
        detail = f"{detail}; {', '.join(ways_out)}"
    if kind == "cannot-certify":
        counts: dict[str, Any] = {name: document.get(name) for name in CannotCertifyError.COUNTS}
        low, high = counts["needed_range"] or (None, None)
        return CannotCertifyError(detail, **{**counts, "needed_range": (low, high)})
    known = KINDS.get(kind)
    return ServiceError(detail, status, document) if known is None else known(detail)


def _ways_out(document: dict[str, Any]) -> list[str]:
    """What the problems of a document advise, each once; whatever else a proxy may have sent is passed over."""
    errors = document.get("errors")
    given = [each.get("way_out") for each in errors if isinstance(each, dict)] if isinstance(errors, list) else []
    return list(dict.fromkeys(way_out for way_out in given if isinstance(way_out, str) and way_out))
