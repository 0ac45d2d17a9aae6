"""Moment: a recogniser's settings and state, read once, so that all of an answer is of one version."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holue.errors import IncompleteSearchError, InvalidParameterError, NotCalibratedError
from holue.evidence.evidence import Evidence
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.answer.identifications import Identifications
from holue.recognition.answer.partly_seen import PartlySeen
from holue.recognition.calibration.doubts import Doubt, calibration_doubts
from holue.recognition.calibration.drift import DriftState
from holue.recognition.calibration.validation import validation_gallery
from holue.recognition.reading import Reading
from holue.recognition.risk.candidate_sets import CandidateSets, candidate_sets
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.search.search import Search
from holue.recognition.search.search_report import SearchReport
from holue.recognition.settings import Settings
from holue.recognition.state.examination import Examination
from holue.recognition.state.state import State
from holue.recognition.state.state_cell import StateCell


@dataclass(frozen=True, eq=False)
class Moment:
    """What answers at one moment: the cell only lends the search prepared for this state's gallery."""

    settings: Settings
    state: State
    cell: StateCell

    @property
    def search(self) -> Search:
        """How the enrolled gallery is read."""
        point = self.state.operating_point
        return self.cell.search(self.settings.search, self.state.gallery, None if point is None else point.threshold)

    @property
    def search_report(self) -> SearchReport:
        """How the enrolled gallery is read now, why, and what an index misses."""
        return self.cell.search_report(self.settings.search, self.state)

    def probes(self, X: object, concentration: object = None) -> Embeddings:
        """Probes of as many features as the gallery has."""
        return Embeddings.from_samples(X, concentration, dim=self.state.gallery.dim)

    def best(self, X: object, concentration: object) -> Evidence:
        """The best subject of each probe, and nothing else."""
        probes, search = self.probes(X, concentration), self.search
        evidence = search.scan(probes.directions, [], top_k=1, threads=self.settings.threads)
        check_whole(search)
        return evidence

    def examine(
        self,
        X: object,
        concentration: object,
        *,
        top_k: int,
        gallery: Gallery | tuple[object, ...] | None = None,
        partial: bool = False,
    ) -> Examination:
        """Read probes, among the enrolled or in a gallery of their own; ``partial`` says that some of it may be out of reach."""
        settings, state = self.settings, self.state
        point, score = state.point, state.quality_of(settings.method)
        probes = self.probes(X, concentration)
        if gallery is None:
            search = self.search
        else:
            search = GallerySearch.exact(validation_gallery(gallery, state.gallery, settings.weighting))
            point = state.point_for(len(search), settings.hold)
        reading = Reading.of(
            probes, search, point, temperature=settings.temperature, top_k=top_k, threads=settings.threads
        )
        if not partial:
            check_whole(search)
        return Examination(reading, score, state.quality_levels, state.calibration_fingerprints, state.lineage)

    def identify(self, X: object, concentration: object, *, top_k: int) -> Identifications:
        """The whole answer about each probe, with its ``top_k`` candidates."""
        if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 1:
            raise InvalidParameterError(f"top_k must be a whole number of at least 1, got {top_k!r}")
        shown = min(int(top_k), len(self.state.gallery))
        seen = self.examine(X, concentration, top_k=shown, partial=True)
        filter_below = self.state.filter_threshold(self.settings.filter_below)
        answers = Identifications.of(seen.reading, seen.score, filter_below, shown, self.state.probability_model)
        if not seen.reading.search.missing:
            return answers
        partly = PartlySeen.of(seen.reading, len(self.state.gallery), filters=bool(filter_below > -np.inf))
        return answers.left_open(partly.reasons, partly.decided)

    def sets(self, X: object, concentration: object, *, confidence_level: float) -> CandidateSets:
        """The candidate sets of each probe; the gallery is read exactly, as the calibration did."""
        if self.state.conformal_scores is None:
            raise NotCalibratedError("candidate sets rest on validation probes: call calibrate(X_dev, y_dev) first")
        thresholds = self.state.conformal_scores.thresholds(confidence_level)
        probes, search = self.probes(X, concentration), GallerySearch.exact(self.state.gallery)
        return candidate_sets(probes, search, self.state.point, *thresholds, confidence_level, self.settings.threads)

    def doubts(self, drift: DriftState | None = None) -> tuple[Doubt, ...]:
        """Why the calibration may no longer fit."""
        return calibration_doubts(self.state, self.settings, drift=drift, search=self.search_report)


def check_whole(search: Search) -> None:
    """An error where scans could not see everybody, for what must not rest on a part."""
    if search.missing:
        raise IncompleteSearchError(
            f"{search.missing} enrolled subjects could not be read, and this needs them all; ask again once they can be reached"
        )
