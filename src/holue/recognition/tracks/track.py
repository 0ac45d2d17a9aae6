"""Track: samples of one probe that arrive one after the other, the answer so far, and when it is certain enough."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from holue.errors import InvalidParameterError, NotCalibratedError
from holue.gallery.embeddings import FloatArray, as_vectors
from holue.gallery.pooling import pool_probes
from holue.gallery.subjects import UNKNOWN
from holue.recognition.answer.identifications import Identification, Identifications


class Identifier(Protocol):
    """Who answers: a recogniser, or a gallery opened by ``holue.open``, calibrated on tracks."""

    def identify(self, X: object, concentration: object = None, *, top_k: int = 5) -> Identifications:
        """The answer for each probe."""
        ...


class Track:
    """One probe of several samples: frames of a face that is followed, utterances of one speaker.

    The samples are pooled, and what their media are worth is added up (``pool_probes``). Whoever answers must have been
    calibrated on probes that were pooled in the same way, of one sample and of several (``draw_tracks``): the same score means
    less certainty for one sample than for ten of somebody enrolled, and the other way round for a stranger.

    The answer of a track is what is more probable, the best candidate or nobody enrolled. It is not read from the threshold:
    strangers' scores grow with the number of samples, and one threshold would accept more of them the longer a track is.
    ``risk`` is the probability of a wrong answer at which the answer can be taken.

    >>> from holue import OpenSetRecognizer
    >>> recognizer = OpenSetRecognizer("galue", threshold=0.6).fit(np.eye(3), ["ann", "bob", "cay"])
    >>> track = Track(recognizer, risk=0.05)
    >>> for sample in ([1.0, 0.7, 0.0], [1.0, -0.6, 0.2], [1.0, 0.1, 0.1]):
    ...     track.add(sample)
    ...     print(len(track), track.subject)
    1 ann
    2 ann
    3 ann
    """

    def __init__(self, identifier: Identifier, *, risk: float = 0.01) -> None:
        if not 0 < risk < 1:
            raise InvalidParameterError(f"risk must lie between 0 and 1, got {risk}")
        self.identifier = identifier
        self.risk = risk
        self._samples: list[FloatArray] = []
        self._concentrations: list[float] = []
        self._media: list[str] = []
        self._answer: Identification | None = None

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, sample: object, concentration: float | None = None, *, medium: str | None = None) -> None:
        """Take one more sample (d,), and ask about all so far.

        Samples of one ``medium`` (a shot, a recording) count as one; without it each sample is a medium of its own. The
        concentration is given for all samples or for none.
        """
        if self._samples and (concentration is None) != (not self._concentrations):
            known = f"{len(self._concentrations)} of the {len(self)} samples so far have one"
            raise InvalidParameterError(
                f"concentration must be given for all samples of a track or for none: {known}, this one "
                f"{'has none' if concentration is None else 'has'}; start another track"
            )
        vector = as_vectors(np.atleast_2d(np.asarray(sample)), field="sample")
        samples = [*self._samples, vector]
        concentrations = [] if concentration is None else [*self._concentrations, concentration]
        media = [*self._media, f"sample {len(self)}" if medium is None else f"medium {medium}"]
        _, probe = pool_probes(
            np.concatenate(samples),
            np.zeros(len(samples), dtype=np.int64),
            media=media,
            concentration=concentrations or None,
        )
        answer = self.identifier.identify(probe.directions, probe.concentrations)[0]
        self._samples, self._concentrations, self._media, self._answer = samples, concentrations, media, answer

    @property
    def subject(self) -> Any:
        """The answer so far: an enrolled subject, or UNKNOWN."""
        answer = self.identification
        return answer.candidates[0].subject if answer.p_subject >= answer.p_unknown else UNKNOWN

    @property
    def p_wrong(self) -> float:
        """The probability that :attr:`subject` is wrong."""
        answer = self.identification
        if not answer.calibrated:
            raise NotCalibratedError(
                "how sure a track is, is read from calibrated probabilities: calibrate on tracks (draw_tracks) first"
            )
        return 1.0 - max(answer.p_subject, answer.p_unknown)

    @property
    def sure(self) -> bool:
        """Whether P(wrong) is at most ``risk``: then the answer can be taken."""
        return self.p_wrong <= self.risk

    @property
    def identification(self) -> Identification:
        """What was answered about all samples so far: candidates, their probabilities, reasons, the decision at the threshold."""
        if self._answer is None:
            raise InvalidParameterError("the track has no sample yet, so there is no answer; add one first")
        return self._answer
