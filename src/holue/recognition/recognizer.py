"""OpenSetRecognizer: the front door, in scikit-learn's manner.

fit (who is enrolled) → calibrate (where to accept, how far to trust) → predict, identify.
"""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from holue.errors import (
    CalibrationDataError,
    InvalidParameterError,
    InvalidSubjectsError,
    NotCalibratedError,
)
from holue.evidence.evidence import Evidence
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.gallery.subjects import UNKNOWN
from holue.recognition.calibration.doubts import Doubt, calibration_doubts, refuse_other_model, tell_doubts
from holue.recognition.calibration.drift import DriftState
from holue.recognition.calibration.fingerprint import Fingerprints, fingerprints
from holue.recognition.calibration.leave_one_out import leave_one_out_calibration
from holue.recognition.calibration.truth import correct_answers, people, truth_rows
from holue.recognition.calibration.validation import (
    point_at_fpir,
    point_at_threshold,
    quality_levels,
    require_two,
    validation_gallery,
)
from holue.recognition.identifications import Identifications, named
from holue.recognition.model.operating_point import Hold, OperatingPoint
from holue.recognition.model.posterior import log_posterior
from holue.recognition.quality import SCORES, QualityScore
from holue.recognition.quality.probability_model import ProbabilityModel, learned_probabilities
from holue.recognition.reading import Reading
from holue.recognition.risk.candidate_sets import CandidateSets, candidate_sets
from holue.recognition.risk.certificate import RiskCertificate
from holue.recognition.risk.conformal import ConformalScores
from holue.recognition.saved.recognizer_folder import read_recognizer, write_recognizer
from holue.recognition.search import Search, SearchKind, search_of
from holue.recognition.seeds import RandomState, generator
from holue.recognition.settings import check_settings
from holue.recognition.state import Knowledge, Known, begin, change, knowledge_of, learn


class OpenSetRecognizer(BaseEstimator):  # type: ignore[misc]
    """Answers *who*, or *nobody enrolled*, and how far to trust the answer.

    Parameters
    ----------
    method : str
        How an answer's reliability is judged, one of ``SCORES``: "holue" (the paper's HolUE-MLP), "holue-plus", "holue-sum",
        "holue-mc", "holue-closed", "galue", "galue-entropy", "acceptance", "quality". The decision is the same for all.
    target_fpir : float
        The share of strangers that may be accepted; :meth:`calibrate` sets the threshold for it.
    unknown_prior : float
        β, the probability beforehand that a probe shows nobody enrolled.
    temperature : float
        T of HolUE's posterior.
    random_state : int, Generator, RandomState or None
        Seed of the head's training.
    threshold : float or None
        A fixed cosine threshold τ in place of one calibrated for ``target_fpir``; then the methods that learn nothing ("galue",
        "galue-entropy", "acceptance", "quality", "holue-closed") need no calibration.
    hold : "model", "fpir" or "threshold"
        What stays when the gallery changes size: κ and β, so that the threshold follows the gallery; the FPIR, as the
        validation strangers' own scores foretell it; or the threshold.
    weighting : "uniform" or "concentration"
        How the samples of a subject are pooled.
    threads : int or None
        Threads of a gallery scan; None for all cores.
    search : "exact", "float16", "int8" or "approximate"
        How the enrolled gallery is read; see :class:`holue.recognition.search.Search`. Calibration reads exactly.
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

    gallery_ = Known[Gallery]()
    operating_point_ = Known[OperatingPoint]()
    quality_ = Known[QualityScore]()
    probability_model_ = Known[ProbabilityModel]()
    quality_levels_ = Known[Float64Array]()
    calibration_fingerprints_ = Known[Fingerprints]()
    conformal_scores_ = Known[ConformalScores]()
    certificate_ = Known[RiskCertificate]()
    _knowledge: Knowledge | None = None
    _search: Search

    def __init__(
        self,
        method: str = "holue",
        *,
        target_fpir: float = 0.05,
        unknown_prior: float = 0.5,
        temperature: float = 20.0,
        random_state: RandomState = 0,
        threshold: float | None = None,
        hold: Hold = "model",
        weighting: str = "uniform",
        threads: int | None = None,
        search: SearchKind = "exact",
        filter_below: float | None = None,
        embedding_model: str | None = None,
    ) -> None:
        self.method = method
        self.target_fpir = target_fpir
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
        check_settings(self)
        if y is None:
            raise InvalidSubjectsError(
                "OpenSetRecognizer requires y to be passed, but the target y is None: name the subject of each sample"
            )
        gallery = Gallery.from_samples(X, y, concentration, media=media, weighting=self.weighting)
        require_two(len(gallery), "fit")
        point, quality = None, None
        if self.threshold is not None:
            point = point_at_threshold(self.threshold, gallery, self.unknown_prior)
            quality = None if SCORES[self.method].needs_fit else SCORES[self.method]()
        begin(self, Knowledge(gallery, self.embedding_model, point, quality))
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
        scores set the threshold; right and wrong answers train the quality.

        Normally the validation subjects are *other* people than the enrolled: then bring them as ``gallery=(X, y)``,
        ``(X, y, concentration)`` or a :class:`Gallery`. The operating point found there is carried over to the enrolled
        gallery's size (see ``hold``).

        Another thread may :meth:`enroll` or :meth:`remove` meanwhile; after a :meth:`fit` there this one has to be called again.
        """
        check_settings(self)
        earlier = knowledge_of(self)
        refuse_other_model(self, "calibrate")
        enrolled = earlier.gallery
        development = validation_gallery(gallery, enrolled, self.weighting)
        probes = Embeddings.from_samples(X, concentration, dim=enrolled.dim)
        score = SCORES[self.method]()
        if score.needs_concentration and probes.concentrations is None:
            raise CalibrationDataError(
                f"method={self.method!r} reads the quality of each probe, and calibrate got no concentration; pass "
                "concentration=, or use method='galue' or 'acceptance', which need none"
            )
        truth = truth_rows(development, y, len(probes))
        if self.threshold is not None:
            point = point_at_threshold(self.threshold, enrolled, self.unknown_prior).for_gallery(
                len(development), self.hold
            )
        else:
            point = point_at_fpir(probes, development, truth, self.target_fpir, self.unknown_prior, self.threads)
        reading = self._read(probes, Search("exact", development), point)
        if score.needs_fit:
            score.fit(reading, truth, generator(self.random_state))
        learned = {
            "quality": score,
            "probability_model": learned_probabilities(score, reading, truth),
            "quality_levels": quality_levels(score, reading),
            "calibration_fingerprints": np.unique(fingerprints(probes)),
            "conformal_scores": ConformalScores.of(reading, truth, people(y, None, len(probes))[0]),
        }
        change(self, lambda now: now.following(earlier).recalibrated(point, self.hold, **learned))
        return self

    def calibrate_leave_one_out(
        self, X: object, y: object, concentration: object = None, *, media: object = None
    ) -> Self:
        """Calibrate without other data: on the samples :meth:`fit` got, each compared with the gallery without it."""
        leave_one_out_calibration(self, X, y, concentration, media=media)
        return self

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
        enrolled, point, earlier = self._calibrated()
        probes = Embeddings.from_samples(X, None, dim=enrolled.dim)
        searched = validation_gallery(gallery, enrolled, self.weighting)
        reading = self._read(probes, Search("exact", searched), point.for_gallery(len(searched), self.hold))
        truth = truth_rows(reading.gallery, y, len(reading))
        learn(self, earlier, conformal_scores=ConformalScores.of(reading, truth, people(y, subject, len(reading))[0]))
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
        refuse_other_model(self, "enroll")
        how: dict[str, Any] = {"media": media, "weighting": self.weighting, "replace": replace}
        change(self, lambda now: now.with_gallery(now.gallery.enroll(X, y, concentration, **how), self.hold))
        return self

    def remove(self, subject: object) -> Self:
        """Remove one subject, or several; the operating point follows the gallery's size."""

        def without(now: Knowledge) -> Knowledge:
            gallery = now.gallery.remove(subject)
            require_two(len(gallery), "remove")
            return now.with_gallery(gallery, self.hold)

        change(self, without)
        return self

    # -- answer -------------------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The columns of :meth:`predict_proba`: enrolled subjects in gallery order, then UNKNOWN."""
        return np.array([*knowledge_of(self).gallery.subjects.tolist(), UNKNOWN], dtype=object)

    @property
    def n_features_in_(self) -> int:
        """The number of coordinates of an embedding, d."""
        return self.gallery_.dim

    @property
    def embedding_model_(self) -> str | None:
        """The fingerprint of the model that the gallery was enrolled with."""
        return knowledge_of(self).embedding_model

    def predict(self, X: object, concentration: object = None) -> npt.NDArray[Any]:
        """The subject of each probe, or UNKNOWN (object array). Two-way always: only :meth:`identify` filters.

        Decisions, scores and GalUE's probabilities do not read ``concentration``; all methods take it, so that one call fits all.
        """
        gallery, point, now = self._calibrated()
        evidence = self._best(gallery, X, concentration)
        tell_doubts(self, now)
        return named(gallery.subjects[evidence.top_index[:, 0]], evidence.top_scores[:, 0] >= point.threshold)

    def decision_function(self, X: object, concentration: object = None) -> Float64Array:
        """``s(p) − τ``: how far the best cosine lies above the threshold; accepted where it is at least 0."""
        gallery, point, _ = self._calibrated()
        return np.asarray(self._best(gallery, X, concentration).top_scores[:, 0] - point.threshold, dtype=np.float64)

    def predict_proba(self, X: object, concentration: object = None) -> Float64Array:
        """The class model's own posterior (GalUE's) (n, K + 1), the unknown last; columns as in ``classes_``.

        It is not calibrated: :meth:`identify` gives calibrated probabilities. Dense: for small galleries.
        """
        gallery, point, _ = self._calibrated()
        probes = Embeddings.from_samples(X, concentration, dim=gallery.dim)
        log_p, log_p_unknown = log_posterior(probes.directions, gallery.directions, point.model, point.prior)
        return np.exp(np.column_stack([log_p, log_p_unknown]))

    def predict_uncertainty(self, X: object, concentration: object = None) -> Float64Array:
        """Uncertainty of each answer; higher = less certain. ``1 − q`` where the quality is a probability, else ``−q``."""
        now = knowledge_of(self)
        return self._quality(now).uncertainty(self._reading(X, concentration, top_k=1, now=now))

    def predict_set(self, X: object, confidence_level: float = 0.95, concentration: object = None) -> CandidateSets:
        """The smallest sets of answers, UNKNOWN among them, that hold the truth with probability ``confidence_level``.

        It holds for probes of enrolled subjects and for strangers separately (see ``conformal.py``), as long as they are
        like the calibration probes and the gallery is of about the size of theirs. Reads GalUE's posterior, whatever the method.
        """
        gallery, point, now = self._calibrated()
        if now.conformal_scores is None:
            raise NotCalibratedError("candidate sets rest on validation probes: call calibrate(X_dev, y_dev) first")
        thresholds = now.conformal_scores.thresholds(confidence_level)
        probes = Embeddings.from_samples(X, concentration, dim=gallery.dim)
        return candidate_sets(probes, gallery, point, *thresholds, confidence_level, self.threads)

    def identify(self, X: object, concentration: object = None, *, top_k: int = 5) -> Identifications:
        """The whole answer: subject, decision, probabilities, quality and the ``top_k`` candidates of each probe.

        The decision is "accepted", "rejected" (nobody enrolled) or "filtered" (not decided: quality under
        :attr:`filter_threshold`). A filtered answer names no subject, not even UNKNOWN; its candidates are there for
        whoever decides instead.
        """
        if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 1:
            raise InvalidParameterError(f"top_k must be a whole number of at least 1, got {top_k!r}")
        now = knowledge_of(self)
        shown = min(int(top_k), len(now.gallery))
        reading = self._reading(X, concentration, top_k=shown, now=now)
        tell_doubts(self, now)
        return Identifications.of(
            reading, self._quality(now), self._filter_threshold(now.certificate), shown, now.probability_model
        )

    def doubts(self, *, drift: DriftState | None = None) -> tuple[Doubt, ...]:
        """Why the calibration may no longer fit (a gallery outgrown, another embedding model, drift); empty if nothing does.

        ``predict`` and ``identify`` warn of each of them once: :class:`holue.recognition.calibration.doubts.CalibrationWarning`.
        """
        return calibration_doubts(self, drift=drift)

    @property
    def filter_threshold(self) -> float:
        """The quality below which answers are filtered: set by hand, else certified, else −inf (nothing is)."""
        return self._filter_threshold(getattr(self, "certificate_", None))

    def score(self, X: object, y: object, concentration: object = None) -> float:
        """Share of right answers: the enrolled subject named, or the stranger rejected."""
        gallery, point, _ = self._calibrated()
        probes = Embeddings.from_samples(X, concentration, dim=gallery.dim)
        reading = self._read(probes, gallery, point)
        return float(correct_answers(reading, truth_rows(gallery, y, len(probes))).mean())

    # -- save and load ------------------------------------------------------------------------------------------------

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write a directory of ``manifest.json`` and ``.npy`` files, atomically; an earlier save there is replaced."""
        write_recognizer(self, directory)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save` wrote, checked file by file; nothing in it can run code."""
        return read_recognizer(cls, directory)

    # -- inside -------------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._knowledge is not None

    def _calibrated(self) -> tuple[Gallery, OperatingPoint, Knowledge]:
        """The gallery and the operating point of one moment, which belong together, and all else that was known then."""
        now = knowledge_of(self)
        return now.gallery, now.point, now

    def _quality(self, now: Knowledge | None = None) -> QualityScore:
        check_settings(self)
        return (now or knowledge_of(self)).quality_of(self.method)

    def _filter_threshold(self, certificate: RiskCertificate | None) -> float:
        if self.filter_below is not None:
            return float(self.filter_below)
        return -np.inf if certificate is None else certificate.filter_below

    def _reading(
        self,
        X: object,
        concentration: object,
        *,
        top_k: int,
        gallery: Gallery | tuple[object, ...] | None = None,
        now: Knowledge | None = None,
    ) -> Reading:
        now = now or knowledge_of(self)
        point = now.point
        self._quality(now)
        probes = Embeddings.from_samples(X, concentration, dim=now.gallery.dim)
        searched = validation_gallery(gallery, now.gallery, self.weighting)
        return self._read(probes, searched, point.for_gallery(len(searched), self.hold), top_k=top_k)

    def _read(self, probes: Embeddings, gallery: Gallery | Search, point: OperatingPoint, top_k: int = 1) -> Reading:
        search = gallery if isinstance(gallery, Search) else search_of(self, gallery)
        return Reading.of(probes, search, point, temperature=self.temperature, top_k=top_k, threads=self.threads)

    def _best(self, gallery: Gallery, X: object, concentration: object) -> Evidence:
        probes = Embeddings.from_samples(X, concentration, dim=gallery.dim)
        return search_of(self, gallery).scan(probes.directions, [], top_k=1, threads=self.threads)
