"""Preview: what would change if another calibration answered, before it does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.live.version import GalleryVersion
from holue.recognition.answer.identifications import Identifications
from holue.recognition.calibration.doubts import Doubt
from holue.recognition.calibration.leave_one_out import LeftOutProbes, left_out_reading
from holue.recognition.calibration.truth import truth_numbers
from holue.store.values import Int64Array


@dataclass(frozen=True)
class Rates:
    """The errors of decisions on probes whose subjects are known; filtered answers are no errors.

    ``fpir``: the share of strangers who were accepted. ``fnir``: the share of enrolled subjects who were rejected or taken for
    another. None where there are no such probes.
    """

    fpir: float | None
    fnir: float | None
    filtered: float
    strangers: int
    enrolled: int


@dataclass(frozen=True, eq=False)
class CalibrationPreview:
    """A calibration beside the one that answers now, for the gallery as it is."""

    number: int
    active: int | None  # the one that answers now; None where there is none
    subjects: int
    threshold: float
    active_threshold: float | None
    rates: Rates | None  # None where the probes' subjects are not known
    active_rates: Rates | None
    probes: int
    probes_from: str  # "probes" or "leave-one-out"
    differ: Int64Array  # the places of the probes that would be decided otherwise
    changes: dict[str, int]  # such as "accepted to filtered": how many
    doubts: tuple[Doubt, ...]  # why this calibration may not fit the gallery as it is


def preview_probes(
    candidate: GalleryVersion, active: GalleryVersion, X: object, y: object = None, concentration: object = None
) -> CalibrationPreview:
    """The decisions of both about some probes; with the subjects ``y`` they show, also the rates of errors."""
    new = candidate.moment.identify(X, concentration, top_k=1)
    old = active.moment.identify(X, concentration, top_k=1) if _answers(active) else None
    truth = None if y is None else truth_numbers(candidate.moment.state.gallery, y, len(new))
    return _compared(candidate, active, new, old, truth, "probes")


def preview_left_out(candidate: GalleryVersion, active: GalleryVersion, source: LeftOutProbes) -> CalibrationPreview:
    """The same for the enrolled samples, each left out in turn: once as a probe of its subject, once as a stranger's."""
    new, truth = _left_out_answers(candidate, source)
    old = _left_out_answers(active, source)[0] if _answers(active) else None
    return _compared(candidate, active, new, old, truth, "leave-one-out")


def _left_out_answers(version: GalleryVersion, source: LeftOutProbes) -> tuple[Identifications, Int64Array]:
    settings, state = version.settings, version.moment.state
    reading, rows, _ = left_out_reading(
        source.left, state.point, settings.temperature, strangers=source.strangers, threads=settings.threads
    )
    score, below = state.quality_of(settings.method), state.filter_threshold(settings.filter_below)
    answers = Identifications.of(reading, score, below, 1, state.probability_model)
    return answers, np.where(rows >= 0, state.gallery.index_of(source.left.gallery.subjects)[rows], rows)


def _compared(
    candidate: GalleryVersion,
    active: GalleryVersion,
    new: Identifications,
    old: Identifications | None,
    truth: Int64Array | None,
    probes_from: str,
) -> CalibrationPreview:
    state = candidate.moment.state
    changes: Counter[str] = Counter()
    differ = np.empty(0, np.int64)
    if old is not None:
        other = (new.decision != old.decision) | (new.subject != old.subject)
        differ = np.flatnonzero(other).astype(np.int64)
        pairs = zip(old.decision[other].tolist(), new.decision[other].tolist())
        changes.update(f"{before} to {'another' if before == after else after}" for before, after in pairs)
    return CalibrationPreview(
        candidate.calibration or 0, active.calibration, len(candidate), state.point.threshold,
        active.moment.state.point.threshold if old is not None else None,
        None if truth is None else _rates(new, truth, candidate),
        None if truth is None or old is None else _rates(old, truth, candidate),
        len(new), probes_from, differ, dict(changes), candidate.doubts(),
    )  # fmt: skip


def _rates(answers: Identifications, truth: Int64Array, version: GalleryVersion) -> Rates:
    gallery, mated = version.moment.state.gallery, truth >= 0
    right = np.zeros(len(answers), bool)
    here = np.flatnonzero(answers.accepted)
    if len(here):
        right[here] = gallery.index_of(np.array(answers.subject[here].tolist())) == truth[here]
    missed = mated & (answers.rejected | (answers.accepted & ~right))
    return Rates(
        _share((answers.accepted & ~mated)[~mated]), _share(missed[mated]), float(np.mean(answers.filtered)),
        int((~mated).sum()), int(mated.sum()),
    )  # fmt: skip


def _share(wrong: npt.NDArray[np.bool_]) -> float | None:
    return float(np.mean(wrong)) if len(wrong) else None


def _answers(version: GalleryVersion) -> bool:
    """Whether a version has an operating point and a quality of its own: else nothing answers now."""
    return version.state is not None and version.state.operating_point is not None and version.state.quality is not None
