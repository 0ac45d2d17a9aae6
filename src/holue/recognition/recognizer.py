"""OpenSetRecognizer: the front door, in scikit-learn's manner.

fit (who is enrolled) → calibrate (where to accept, how far to trust) → predict, identify.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from holue.errors import InvalidSubjectsError
from holue.gallery.embeddings import Float64Array
from holue.gallery.gallery import Gallery
from holue.gallery.subjects import UNKNOWN
from holue.recognition.answer.identifications import Identifications, named
from holue.recognition.calibration.calibration import ValidationSource, calibrated, conformal_scores
from holue.recognition.calibration.doubts import CalibrationWarning, Doubt, refuse_other_model, warn_once
from holue.recognition.calibration.drift import DriftState
from holue.recognition.calibration.fallback import Fallback, FallbackWarning
from holue.recognition.calibration.fingerprint import Fingerprints
from holue.recognition.calibration.leave_one_out import LeftOutProbes
from holue.recognition.calibration.recognised import Recognised
from holue.recognition.calibration.truth import truth_numbers
from holue.recognition.calibration.validation import (
    ValidationProbes,
    require_two,
    validation_gallery,
)
from holue.recognition.model.operating_point import Hold, OperatingPoint
from holue.recognition.model.posterior import log_posterior
from holue.recognition.quality import QualityScore
from holue.recognition.quality.probability_model import ProbabilityModel
from holue.recognition.risk.candidate_sets import CandidateSets
from holue.recognition.risk.certificate import RiskCertificate
from holue.recognition.risk.conformal import ConformalScores
from holue.recognition.saved.recognizer_folder import read_recognizer, write_recognizer
from holue.recognition.search.search import SearchKind
from holue.recognition.search.search_report import SearchReport
from holue.recognition.seeds import RandomState
from holue.recognition.settings import SETTINGS, Settings
from holue.recognition.state.examination import Examination
from holue.recognition.state.learned import Learned, Learner
from holue.recognition.state.moment import Moment
from holue.recognition.state.state import State


class OpenSetRecognizer(Learner, BaseEstimator):  # type: ignore[misc]
    """Answers *who*, or *nobody enrolled*, and how far to trust the answer.

    Parameters
    ----------
    method : str
        How an answer's reliability is judged, one of ``SCORES``: "holue-plus" (the default), "holue" (the paper's HolUE-MLP),
        "holue-sum", "holue-mc", "holue-closed", "galue", "galue-entropy", "acceptance", "quality". The decision is the same
        for all. Where too few validation answers are right for "holue-plus" to learn from, "galue" takes its place.
    target_fpir : float
        The share of strangers that may be accepted; :meth:`calibrate` sets the threshold for it.
    fpir_confidence : float or None
        With 0.95, the threshold is chosen so that FPIR is at most ``target_fpir`` with this confidence over people, also after
        the gallery grows (with ``hold="fpir"``). None aims at the target itself: half of the time FPIR is above it.
    unknown_prior : float
        β, the probability beforehand that a probe shows nobody enrolled.
    temperature : float
        T of HolUE's posterior.
    random_state : int, Generator, RandomState or None
        Seed of the head's training.
    threshold : float or None
        A fixed cosine threshold τ in place of one calibrated for ``target_fpir``; then the methods that learn nothing ("galue",
        "galue-entropy", "acceptance", "quality", "holue-closed") need no calibration.
    hold : "fpir", "model" or "threshold"
        What stays when the gallery changes size: the FPIR, as the validation strangers' own scores foretell it; κ and β, so
        that the threshold follows the class model; or the threshold. Where no strangers' scores say how to follow them (they
        are all alike, or ``threshold`` is given), "model" takes the place of "fpir".
    weighting : "uniform" or "concentration"
        How the samples of a subject are pooled.
    threads : int or None
        Threads of a gallery scan; None for all cores.
    search : "auto", "exact", "float16", "int8", "binary" or "approximate"
        How the enrolled gallery is read; "auto" reads small ones exactly, and chooses a faster way for large ones by their size
        and what it measures on their rows, in the background (``search_report`` says why). Calibration reads exactly.
    filter_below : float or None
        Answers of lower quality are filtered by :meth:`identify`: neither accepted nor rejected. A
        :class:`holue.recognition.risk.controller.RiskController` finds a threshold with a guarantee; None filters nothing else.
    embedding_model : str or None
        The fingerprint of the model that the embeddings come from, such as ``EmbeddingFile.fingerprint``. Set it anew before
        probes of another model come, and the recogniser says that they do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.eye(4), ["ann", "bob", "cay", "dan"]
    >>> r = OpenSetRecognizer(method="galue", threshold=0.8).fit(X, y)
    >>> r.predict([[0.9, 0.1, 0, 0], [1, 1, 1, 1]])
    array(['ann', UNKNOWN], dtype=object)
    """

    gallery_ = Learned[Gallery]()
    operating_point_ = Learned[OperatingPoint]()
    quality_ = Learned[QualityScore]()
    probability_model_ = Learned[ProbabilityModel]()
    fallbacks_ = Learned[tuple[Fallback, ...]]()
    quality_levels_ = Learned[Float64Array]()
    calibration_fingerprints_ = Learned[Fingerprints]()
    conformal_scores_ = Learned[ConformalScores]()
    certificate_ = Learned[RiskCertificate]()
    recognised_ = Learned[Recognised]()

    def __init__(
        self,
        method: str = "holue-plus",
        *,
        target_fpir: float = 0.05,
        fpir_confidence: float | None = None,
        unknown_prior: float = 0.5,
        temperature: float = 20.0,
        random_state: RandomState = 0,
        threshold: float | None = None,
        hold: Hold = "fpir",
        weighting: str = "uniform",
        threads: int | None = None,
        search: SearchKind = "auto",
        filter_below: float | None = None,
        embedding_model: str | None = None,
    ) -> None:
        self.method = method
        self.target_fpir = target_fpir
        self.fpir_confidence = fpir_confidence
        self.unknown_prior = unknown_prior
        self.temperature = temperature
        self.random_state = random_state
        self.threshold = threshold
        self.hold = hold
        self.weighting = weighting
        self.threads = threads
        self.search = search
        self.filter_below = filter_below
        self.embedding_model = embedding_model

    # -- enrol and calibrate ------------------------------------------------------------------------------------------

    def fit(self, X: object, y: object = None, concentration: object = None, *, media: object = None) -> Self:
        """Enrol a gallery: samples ``X`` (n, d) of subjects ``y``, pooled to one template per subject.

        ``concentration`` is κ_x of each sample, where known; samples that share an id in ``media`` (frames of one video) count
        as one. Fitting anew discards an earlier calibration.
        """
        settings = self._settings
        if y is None:
            raise InvalidSubjectsError(
                "OpenSetRecognizer requires y to be passed, but the target y is None: name the subject of each sample"
            )
        gallery = Gallery.from_samples(X, y, concentration, media=media, weighting=settings.weighting)
        require_two(len(gallery), "fit")
        self._cell.begin(State.fitted(gallery, settings))
        return self

    def calibrate(
        self,
        X: object,
        y: object,
        concentration: object = None,
        *,
        gallery: Gallery | tuple[object, ...] | None = None,
    ) -> Self:
        """Settle the operating point, and fit the quality, on validation probes.

        ``y`` is the subject of each probe, or ``UNKNOWN``; a subject who is not in the gallery is a stranger too. Strangers'
        scores set the threshold; right and wrong answers train the quality. Where a stranger has several probes, name the
        stranger: an UNKNOWN counts as a person of its own, and the FPIR would look surer than it is.

        Normally the validation subjects are *other* people than the enrolled: then bring them as ``gallery=(X, y)``,
        ``(X, y, concentration)`` or a :class:`Gallery`. The operating point found there is carried over to the enrolled
        gallery's size (see ``hold``).

        A setting that the probes cannot support is replaced, with a :class:`FallbackWarning` and an entry in ``fallbacks_``.
        Another thread may :meth:`enroll` or :meth:`remove` meanwhile; where it fits or calibrates, this call is refused.
        """
        now = self._now
        refuse_other_model(now.state.embedding_model, self.embedding_model, "calibrate")
        enrolled = now.state.gallery
        searched = validation_gallery(gallery, enrolled, self.weighting)
        return self._calibrate(ValidationProbes.of(now.probes(X, concentration), y, searched, enrolled), now)

    def calibrate_leave_one_out(
        self, X: object, y: object, concentration: object = None, *, media: object = None
    ) -> Self:
        """Calibrate without other data: on the samples :meth:`fit` got, each compared with the gallery without it."""
        now = self._now
        refuse_other_model(now.state.embedding_model, self.embedding_model, "calibrate_leave_one_out")
        samples = LeftOutProbes.of(self.method, X, y, concentration, media, self.weighting, now.state.gallery)
        return self._calibrate(samples, now)

    def calibrate_sets(
        self,
        X: object,
        y: object,
        *,
        gallery: Gallery | tuple[object, ...] | None = None,
        subject: object = None,
    ) -> Self:
        """Base :meth:`predict_set` on probes of their own, which makes its coverage exact.

        :meth:`calibrate` bases it on the strangers that also set the threshold. ``gallery`` is as there; ``subject`` names the
        person behind every probe, strangers too, where ``y`` does not.
        """
        now = self._now
        searched = validation_gallery(gallery, now.state.gallery, self.weighting)
        point = now.state.point_for(len(searched), self.hold)
        source = ValidationProbes.of(now.probes(X), y, searched, now.state.gallery, subject)
        scores = conformal_scores(source.examined(point, now.settings))
        self._cell.change(lambda state: state.learned_from(now.state.lineage, conformal_scores=scores))
        return self

    def enroll(
        self,
        X: object,
        y: object,
        concentration: object = None,
        *,
        media: object = None,
        replace: bool = False,
    ) -> Self:
        """Add subjects (``replace=True`` renews enrolled ones); the operating point follows the gallery's size."""
        settings = self._settings
        how: dict[str, Any] = {"media": media, "weighting": settings.weighting, "replace": replace}

        def with_more(now: State) -> State:
            refuse_other_model(now.embedding_model, settings.embedding_model, "enroll")
            return now.with_gallery(now.gallery.enroll(X, y, concentration, **how), settings.hold)

        self._cell.change(with_more)
        return self

    def remove(self, subject: object) -> Self:
        """Remove one subject, or several; the operating point follows the gallery's size."""
        hold = self._settings.hold

        def without(now: State) -> State:
            gallery = now.gallery.remove(subject)
            require_two(len(gallery), "remove")
            return now.with_gallery(gallery, hold)

        self._cell.change(without)
        return self

    # -- answer -------------------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The columns of :meth:`predict_proba`: enrolled subjects in the order of their numbers, then UNKNOWN."""
        return np.array([*self._state.gallery.subjects.tolist(), UNKNOWN], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """The number of coordinates of an embedding, d."""
        return self.gallery_.dim

    @property
    def embedding_model_(self) -> str | None:
        """The fingerprint of the model that the gallery was enrolled with."""
        return self._state.embedding_model

    def predict(self, X: object, concentration: object = None) -> npt.NDArray[Any]:
        """The subject of each probe, or UNKNOWN (object array). Two-way always: only :meth:`identify` filters.

        Decisions, scores and GalUE's probabilities do not read ``concentration``; all methods take it, so that one call fits all.
        """
        now = self._now
        evidence = now.best(X, concentration)
        warn_once(now.doubts(), self._cell.warned(now.state))
        accepted = evidence.top_scores[:, 0] >= now.state.point.threshold
        return named(now.state.gallery.names(evidence.top_index[:, 0]), accepted)

    def decision_function(self, X: object, concentration: object = None) -> Float64Array:
        """``s(p) − τ``: how far the best cosine lies above the threshold; accepted where it is at least 0."""
        now = self._now
        return np.asarray(now.best(X, concentration).top_scores[:, 0] - now.state.point.threshold, dtype=np.float64)

    def predict_proba(self, X: object, concentration: object = None) -> Float64Array:
        """The class model's own posterior (GalUE's) (n, K + 1), the unknown last; columns as in ``classes_``.

        It is not calibrated: :meth:`identify` gives calibrated probabilities. Dense: for small galleries.
        """
        now = self._now
        point, directions = now.state.point, now.probes(X, concentration).directions
        log_p, log_p_unknown = log_posterior(directions, now.state.gallery.directions, point.model, point.prior)
        return np.exp(np.column_stack([log_p, log_p_unknown]))

    def predict_uncertainty(self, X: object, concentration: object = None) -> Float64Array:
        """Uncertainty of each answer; higher = less certain. ``1 − q`` where the quality is a probability, else ``−q``."""
        examination = self.examine(X, concentration)
        return examination.score.uncertainty(examination.reading)

    def predict_set(self, X: object, confidence_level: float = 0.95, concentration: object = None) -> CandidateSets:
        """The smallest sets of answers, UNKNOWN among them, that hold the truth with probability ``confidence_level``.

        It holds for probes of enrolled subjects and for strangers separately (see ``conformal.py``), as long as they are
        like the calibration probes and the gallery is of about the size of theirs. Reads GalUE's posterior, whatever the
        method, and the gallery exactly, as the calibration did.
        """
        return self._now.sets(X, concentration, confidence_level=confidence_level)

    def identify(self, X: object, concentration: object = None, *, top_k: int = 5) -> Identifications:
        """The whole answer: subject, decision, probabilities, quality and the ``top_k`` candidates of each probe.

        The decision is "accepted", "rejected" (nobody enrolled) or "filtered" (not decided: quality under
        :attr:`filter_threshold`). A filtered answer names no subject, not even UNKNOWN; its candidates are there for
        whoever decides instead.
        """
        answers = (now := self._now).identify(X, concentration, top_k=top_k)
        warn_once(now.doubts(), self._cell.warned(now.state))
        return answers

    def examine(
        self,
        X: object,
        concentration: object = None,
        *,
        top_k: int = 1,
        gallery: Gallery | tuple[object, ...] | None = None,
    ) -> Examination:
        """What :meth:`identify` is made of: the reading of some probes, and the quality score that rates it.

        ``gallery`` is theirs, as in :meth:`calibrate`, where they are not to be searched among the enrolled.
        """
        return self._now.examine(X, concentration, top_k=top_k, gallery=gallery)

    def certify(self, certificate: RiskCertificate, examination: Examination) -> None:
        """Filter by a certificate made from an :meth:`examine`; refused where the recogniser was calibrated again since."""
        self._cell.change(lambda now: now.learned_from(examination.lineage, certificate=certificate))

    def doubts(self, *, drift: DriftState | None = None) -> tuple[Doubt, ...]:
        """Why the calibration may no longer fit (a gallery outgrown, another embedding model, drift); empty if nothing does.

        ``predict`` and ``identify`` warn of each of them once, all in one ``CalibrationWarning``.
        """
        return self._now.doubts(drift)

    @property
    def search_report(self) -> SearchReport:
        """How the gallery is read now, why, and which share of mates at the threshold an index misses."""
        return self._now.search_report

    @property
    def filter_threshold(self) -> float:
        """The quality below which answers are filtered: set by hand, else certified, else −inf (nothing is)."""
        return self._state.filter_threshold(self._settings.filter_below)

    def score(self, X: object, y: object, concentration: object = None) -> float:
        """Share of right answers: the enrolled subject named, or the stranger rejected."""
        now = self._now
        threshold, evidence = now.state.point.threshold, now.best(X, concentration)
        truth, best = truth_numbers(now.state.gallery, y, len(evidence)), evidence.top_index[:, 0]
        return float((np.where(evidence.top_scores[:, 0] >= threshold, best, -1) == truth).mean())

    # -- save and load ------------------------------------------------------------------------------------------------

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write a directory of ``manifest.json`` and ``.npy`` files, atomically; an earlier save there is replaced."""
        write_recognizer(self._settings, self._state, directory)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote, checked file by file; nothing in it can run code."""
        settings, state = read_recognizer(directory)
        recognizer = cls(**{name: getattr(settings, name) for name in SETTINGS})
        recognizer._cell.begin(state)
        return recognizer

    # -- inside -------------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._cell.is_fitted

    @property
    def _settings(self) -> Settings:
        return Settings(**{name: getattr(self, name) for name in SETTINGS})

    @property
    def _now(self) -> Moment:
        return Moment(self._settings, self._state, self._cell)

    def _calibrate(self, source: ValidationSource, earlier: Moment) -> Self:
        settings, lineage = earlier.settings, earlier.state.lineage
        calibration = calibrated(source, settings)
        self._cell.change(lambda now: now.calibrated(calibration, settings.hold, lineage))
        for fallback in calibration.fallbacks:
            if settings.threshold is None or fallback.setting != "hold":  # a threshold was given: no surprise
                warnings.warn(str(fallback), FallbackWarning, stacklevel=3)
        for sentence in calibration.shortcomings:
            warnings.warn(sentence, CalibrationWarning, stacklevel=3)
        self._cell.warned(self._state).add("recognised")  # said, where there was reason to
        return self
