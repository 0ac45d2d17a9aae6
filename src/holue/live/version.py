"""GalleryVersion: one version of a gallery with its calibration, which answers; it never changes."""

from __future__ import annotations

from dataclasses import dataclass

from holue.errors import GalleryTooSmallError
from holue.gallery.gallery import Gallery
from holue.live.calibrations import StoredCalibration
from holue.recognition.answer.identifications import Identifications
from holue.recognition.calibration.doubts import Doubt, calibration_doubts, warn_once
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

    @classmethod
    def of(
        cls,
        version: int,
        settings: Settings,
        gallery: Gallery | None,
        calibrated: StoredCalibration | None,
        cell: StateCell | None = None,
    ) -> GalleryVersion:
        """A gallery with its operating point: calibrated, or at the threshold that was given."""
        state = None
        own = StateCell() if cell is None else cell
        if gallery is not None and len(gallery) > 1:
            fitted = calibrated is None
            state = State.fitted(gallery, settings) if fitted else calibrated.state(gallery, settings)  # type: ignore[union-attr]
            own.begin(state)
        return cls(version, settings, gallery, calibrated, state, own)

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
        return Moment(self.settings, self.state, self.cell)

    def identify(self, X: object, concentration: object = None, *, top_k: int = 5) -> Identifications:
        """The whole answer about each probe: see :meth:`holue.recognition.recognizer.OpenSetRecognizer.identify`."""
        moment = self.moment
        answers = moment.identify(X, concentration, top_k=top_k)
        warn_once(calibration_doubts(moment.state, self.settings), self.cell.warned(moment.state))
        return answers

    def doubts(self) -> tuple[Doubt, ...]:
        """Why the calibration may no longer fit; empty where nothing speaks against it, or there is none."""
        return (
            ()
            if self.state is None or self.state.operating_point is None
            else calibration_doubts(self.state, self.settings)
        )
