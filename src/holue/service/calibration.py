"""Calibration from reviews: what people decided, as probes to calibrate a living gallery on, or to preview a calibration."""

from __future__ import annotations

from typing import Any

from holue.errors import CalibrationDataError
from holue.live.calibration.calibrations import CalibrationEntry
from holue.live.calibration.preview import CalibrationPreview
from holue.live.live_gallery import LiveGallery
from holue.service.ledger.ledger import Ledger
from holue.store.values import SubjectId


def calibrate_from_reviews(
    gallery: LiveGallery, ledger: Ledger, *, activate: bool = False, by: str | None = None
) -> CalibrationEntry:
    """Calibrate on a random sample of the answers that were reviewed; a candidate unless ``activate`` is given.

    Probes of subjects who have left the gallery since are left out.
    """
    labelled = ledger.labelled_probes.sample(model=gallery.model)
    known, subjects = labelled.named(_names(gallery))
    if not len(subjects):
        raise CalibrationDataError(
            "no random sample of answers has been reviewed: filtered answers alone are not like the probes to come; set "
            "review_share above 0, and decide the sampled answers and the filtered ones"
        )
    kappa = None if labelled.concentration is None else labelled.concentration[known]
    return gallery.calibrate(
        labelled.embeddings[known], subjects, kappa, activate=activate, source="reviews", by=by, model=gallery.model
    )


def preview_on_reviews(gallery: LiveGallery, ledger: Ledger, number: int, *, since: float = 0.0) -> CalibrationPreview:
    """What would change, on the probes that people decided since a time; hard ones are many among them, so are errors."""
    labelled = ledger.labelled_probes.read(model=gallery.model, since=since)
    known, subjects = labelled.named(_names(gallery))
    if not len(subjects):
        raise CalibrationDataError(
            "nothing has been reviewed since then; give probes, or preview on the enrolled samples"
        )
    kappa = None if labelled.concentration is None else labelled.concentration[known]
    return gallery.preview(number, labelled.embeddings[known], subjects, kappa)


def certify_from_reviews(
    gallery: LiveGallery, ledger: Ledger, number: int, *, by: str | None = None, **wanted: Any
) -> CalibrationEntry:
    """Certify a risk on a random sample of the answers that were reviewed.

    A calibration that was itself made from reviews is certified on answers that were given since, and on no others.
    """
    entry = next((one for one in gallery.calibrations() if one.number == number), None)
    since = entry.time if entry is not None and entry.source == "reviews" else 0.0
    labelled = ledger.labelled_probes.sample(model=gallery.model, since=since)
    known, subjects = labelled.named(_names(gallery))
    if not len(subjects):
        raise CalibrationDataError(
            "no random sample of answers has been reviewed"
            + (" since the calibration was made from earlier ones" if since else "")
            + "; set review_share above 0, and decide the sampled answers and the filtered ones, or give probes"
        )
    kappa = None if labelled.concentration is None else labelled.concentration[known]
    return gallery.certify(number, labelled.embeddings[known], subjects, kappa, by=by, **wanted)


def _names(gallery: LiveGallery) -> dict[int, SubjectId]:
    return dict(gallery.store.at(gallery.current.version).names())
