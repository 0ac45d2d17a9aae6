"""Learning: what a calibration rests on, and the state that it gives; keeping it is another matter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.live.calibration.calibrations import Source
from holue.live.version import GalleryVersion
from holue.recognition.calibration.calibration import ValidationSource, calibrated
from holue.recognition.calibration.doubts import CalibrationWarning
from holue.recognition.calibration.fallback import FallbackWarning
from holue.recognition.calibration.leave_one_out import LeftOutProbes
from holue.recognition.calibration.validation import ValidationProbes, validation_gallery
from holue.recognition.state.moment import check_whole
from holue.recognition.state.state import State


def learn(
    now: GalleryVersion,
    left_out: Callable[[GalleryVersion], LeftOutProbes],
    X: object,
    y: object,
    concentration: object,
    gallery: Gallery | tuple[object, ...] | None,
    dim: int,
) -> tuple[State, list[UserWarning]]:
    """The state of a version once it has learned from probes, or from its own samples where ``X`` is None; and the warnings."""
    moment, settings = now.moment, now.settings
    source: ValidationSource
    if X is None:
        source = left_out(now)
    else:
        searched = validation_gallery(gallery, moment.state.gallery, settings.weighting)
        # A gallery that is given is not turned, and so its probes must not be.
        given = moment.probes if gallery is None else partial(Embeddings.from_samples, dim=dim)
        search = moment.cell.search("exact", searched) if gallery is None else None
        source = ValidationProbes.of(given(X, concentration), y, searched, moment.state.gallery, search=search)
    learned = calibrated(source, settings)
    if isinstance(source, ValidationProbes):
        check_whole(source.search)
    state = moment.state.calibrated(learned, settings.hold, moment.state.lineage)
    told = settings.threshold is None
    said: list[UserWarning] = [
        FallbackWarning(str(each)) for each in learned.fallbacks if told or each.setting != "hold"
    ]
    if (shortfall := state.point.shortfall) is not None:
        said.append(CalibrationWarning(shortfall))
    if state.recognised is not None and state.recognised.is_rare:
        said.append(CalibrationWarning(state.recognised.doubt))
    return state, said


def made_from(X: object, source: Source | None) -> Source:
    """What a calibration is made from, checked."""
    if X is None and source not in (None, "leave-one-out"):
        raise InvalidParameterError(f"source={source!r} needs the probes X and their subjects y")
    if X is not None and source == "leave-one-out":
        raise InvalidParameterError("source='leave-one-out' reads the enrolled samples; leave X and y out")
    return source or ("leave-one-out" if X is None else "probes")
