"""GalleryVersion: one version of a gallery with its calibration, which answers; it never changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from holue.errors import GalleryTooSmallError
from holue.gallery.gallery import Gallery
from holue.live.calibration.calibrations import StoredCalibration
from holue.live.missing import Missing
from holue.live.protection import ProtectedMoment, Rotation
from holue.recognition.answer.identifications import Identifications
from holue.recognition.calibration.doubts import Doubt, calibration_doubts, warn_once
from holue.recognition.calibration.drift import DriftState
from holue.recognition.settings import Settings
from holue.recognition.state.moment import Moment
from holue.recognition.state.state import State
from holue.recognition.state.state_cell import StateCell


@dataclass(frozen=True, eq=False)
class GalleryVersion:
    """What answers: all of it belongs together, so that an answer is of one version.

    Take ``gallery.current`` once and ask it, where the version of an answer is to be known.
    """

    version: int
    settings: Settings
    gallery: Gallery | None  # one template per subject; None where nobody is enrolled
    calibrated: StoredCalibration | None
    state: State | None  # None where fewer than two are enrolled
    cell: StateCell  # lends the search prepared for this version
    missing: Missing = field(default_factory=Missing)  # what of a damaged gallery could not be read
    rotation: Rotation | None = None  # of a protected gallery, whose rows are turned

    @classmethod
    def of(
        cls,
        version: int,
        settings: Settings,
        gallery: Gallery | None,
        calibrated: StoredCalibration | None,
        cell: StateCell | None = None,
        missing: Missing | None = None,
        rotation: Rotation | None = None,
    ) -> GalleryVersion:
        """A gallery with its operating point: calibrated, or at the threshold that was given."""
        state = None
        own = StateCell() if cell is None else cell
        if gallery is not None and len(gallery) > 1:
            fitted = calibrated is None
            state = State.fitted(gallery, settings) if fitted else calibrated.state(gallery, settings)  # type: ignore[union-attr]
            own.begin(state)
        return cls(version, settings, gallery, calibrated, state, own, missing or Missing(), rotation)

    def __len__(self) -> int:
        return 0 if self.gallery is None else len(self.gallery)

    @property
    def calibration(self) -> int | None:
        """The number of the calibration, for the log of answers."""
        return None if self.calibrated is None else self.calibrated.entry.number

    @property
    def moment(self) -> Moment:
        """Settings, state and search, as recognition reads them; an error where fewer than two subjects are enrolled."""
        if self.state is None:
            raise GalleryTooSmallError(
                f"identification needs at least 2 enrolled subjects, version {self.version} has {len(self)}; enrol more"
            )
        if self.rotation is not None:
            return ProtectedMoment(self.settings, self.state, self.cell, self.rotation)
        return Moment(self.settings, self.state, self.cell)

    def identify(self, X: object, concentration: object = None, *, top_k: int = 5) -> Identifications:
        """The whole answer about each probe: see :meth:`holue.recognition.recognizer.OpenSetRecognizer.identify`.

        Where part of the gallery could not be read every decision is "incomplete".
        """
        moment = self.moment
        answers = moment.identify(X, concentration, top_k=top_k)
        warn_once(
            calibration_doubts(moment.state, self.settings, search=moment.search_report), self.cell.warned(moment.state)
        )
        return answers.left_open(self.missing.reason) if self.missing else answers

    def doubts(self, *, drift: DriftState | None = None) -> tuple[Doubt, ...]:
        """Why the calibration may no longer fit; empty where nothing speaks against it, or there is none.

        ``drift`` is where a :class:`holue.recognition.calibration.drift.DriftMonitor` of the probes stands, if there is one.
        """
        if self.state is None or self.state.operating_point is None:
            return ()
        return calibration_doubts(self.state, self.settings, drift=drift, search=self.moment.search_report)
