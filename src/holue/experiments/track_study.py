"""Track study: does P(wrong) of probes of several samples come true, and what does stopping early cost?

Half of the people (for speech the official train list) calibrate, the others are asked about. In each part one clean sample of
half of the people is enrolled and the others are strangers; of the people who are asked about each half is enrolled in turn.
Probes are tracks of degraded samples; versions of one image or utterance share a medium, and the concentration of a probe is the
number of its media. Everything that answers is learned on the people who calibrate: nothing is chosen on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.embedding.models.embedding_file import Names
from holue.experiments.answer_study import TARGET_FPIR, Claims
from holue.experiments.experiment import Size
from holue.experiments.sets.lfw import embed_faces
from holue.experiments.sets.speakers import embed_voices
from holue.experiments.split import shares
from holue.experiments.versions import Versions, random_rank
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.pooling import pool_probes
from holue.recognition.answer.identifications import Identifications
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.tracks.drawn_tracks import LENGTHS, draw_tracks

ASKED = (1, 3, 10)
"""Samples of the tracks that are asked about."""
EACH = 3
"""Tracks of one person, of each length."""
RISKS = (0.01, 0.02, 0.05)
CALIBRATED_ON = {"single samples": (1,), "tracks": LENGTHS}


@dataclass(frozen=True, eq=False)
class TrackPart:
    """Enrolled samples and the samples that tracks are drawn from, with whom and which medium each shows."""

    gallery: FloatArray
    gallery_subjects: Names
    samples: FloatArray
    person: Names
    media: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TrackAnswers:
    """The answers about tracks of one length: P(right) of the more probable answer, and whom the strangers were taken for."""

    claims: Claims
    strangers_named: npt.NDArray[np.bool_]  # by the track's own answer
    strangers_accepted: npt.NDArray[np.bool_]  # at the threshold of ``identify``


@dataclass(frozen=True, eq=False)
class Stopped:
    """Tracks that end at the first sure moment: after how many samples (0: never), whether wrong, and P(wrong) said."""

    samples: npt.NDArray[np.int64]
    wrong: npt.NDArray[np.bool_]
    said: Float64Array


@dataclass(frozen=True, eq=False)
class TrackResult:
    """One split: answers by what was calibrated on and by length, and stopped tracks by risk."""

    answers: dict[tuple[str, int], list[TrackAnswers]]
    stopped: dict[float, list[Stopped]]


Split = Callable[[int], tuple[TrackPart, Sequence[TrackPart]]]
"""A seed → the part that calibrates and the parts that are asked about."""


def study_tracks(development: TrackPart, evaluations: Sequence[TrackPart], *, seed: int) -> TrackResult:
    """Calibrate on single samples and on tracks of one part, and ask about tracks of the others."""
    answers: dict[tuple[str, int], list[TrackAnswers]] = {}
    stopped: dict[float, list[Stopped]] = {risk: [] for risk in RISKS}
    for kind, lengths in CALIBRATED_ON.items():
        for place, part in enumerate(evaluations):
            rng = np.random.default_rng([seed, place, 1])
            recognizer = _calibrated(development, part, lengths, seed)
            for length in ASKED:
                tracks = draw_tracks(part.samples, part.person, media=part.media, lengths=(length,), each=EACH, rng=rng)
                found = recognizer.identify(tracks.X, tracks.concentration, top_k=1)
                answers.setdefault((kind, length), []).append(_answers(found, tracks.y, part))
            if kind == "tracks":
                for risk, one in _stopped(recognizer, part, rng).items():
                    stopped[risk].append(one)
    return TrackResult(answers, stopped)


def _calibrated(development: TrackPart, part: TrackPart, lengths: Sequence[int], seed: int) -> OpenSetRecognizer:
    tracks = draw_tracks(
        development.samples,
        development.person,
        media=development.media,
        lengths=lengths,
        rng=np.random.default_rng(seed),
    )
    recognizer = OpenSetRecognizer("holue-plus", target_fpir=TARGET_FPIR, hold="fpir", random_state=seed)
    recognizer.fit(part.gallery, part.gallery_subjects)
    return recognizer.calibrate(
        tracks.X, tracks.y, tracks.concentration, gallery=(development.gallery, development.gallery_subjects)
    )


def right_answers(found: Identifications, person: Names, enrolled: Names) -> tuple[Float64Array, npt.NDArray[np.bool_]]:
    """P(right) of the more probable of best candidate and nobody, and whether that is right."""
    mated = np.isin(person, enrolled)
    named = found.p_subject >= found.p_unknown
    right = np.where(named, found.candidate_subjects[:, 0] == person, ~mated)
    return np.maximum(found.p_subject, found.p_unknown), right.astype(bool)


def _answers(found: Identifications, person: Names, part: TrackPart) -> TrackAnswers:
    probability, right = right_answers(found, person, part.gallery_subjects)
    strangers = ~np.isin(person, part.gallery_subjects)
    named = found.p_subject >= found.p_unknown
    return TrackAnswers(Claims(probability, right, person), named[strangers], found.accepted[strangers])


def _stopped(recognizer: OpenSetRecognizer, part: TrackPart, rng: np.random.Generator) -> dict[float, Stopped]:
    """Tracks of people with enough samples, asked about after each sample; each ends where P(wrong) is at most the risk."""
    longest = max(ASKED)
    rows = [
        rng.permutation(own)[:longest]
        for person in np.unique(part.person)
        if len(own := np.flatnonzero(part.person == person)) >= longest
        for _ in range(EACH)
    ]
    person = part.person[[some[0] for some in rows]]
    probability, right = np.empty((len(rows), longest)), np.empty((len(rows), longest), bool)
    for length in range(1, longest + 1):
        taken = np.concatenate([some[:length] for some in rows])
        group = np.repeat(np.arange(len(rows)), length)
        _, probes = pool_probes(part.samples[taken], group, media=part.media[taken])
        found = recognizer.identify(probes.directions, probes.concentrations, top_k=1)
        probability[:, length - 1], right[:, length - 1] = right_answers(found, person, part.gallery_subjects)
    every, ends = np.arange(len(rows)), {}
    for risk in RISKS:
        sure = 1 - probability <= risk
        first = np.argmax(sure, axis=1)
        samples = np.where(sure.any(axis=1), first + 1, 0)
        ends[risk] = Stopped(samples, ~right[every, first], 1 - probability[every, first])
    return ends


# -- the sets -----------------------------------------------------------------------------------------------------------


def face_tracks(size: Size) -> tuple[str, Split]:
    """LFW: one clean face of a person enrolled, degraded versions of the other images followed."""
    versions = embed_faces(size).people
    people = np.unique(versions.subjects)
    return "LFW, degraded", _split(versions, lambda rng: shares(people, (0.5, 0.5), rng))


def voice_tracks(size: Size) -> tuple[str, Split]:
    """speechocean762: one whole utterance enrolled, short noisy cuts of the others followed."""
    voices = embed_voices(size)
    others = np.setdiff1d(np.unique(voices.utterances.subjects), voices.test_speakers)
    return "speechocean762, short cuts", _split(voices.utterances, lambda rng: (others, voices.test_speakers))


TRACK_SETS: dict[str, Callable[[Size], tuple[str, Split]]] = {"lfw": face_tracks, "speakers": voice_tracks}


def _split(versions: Versions, parts: Callable[[np.random.Generator], Sequence[Names]]) -> Split:
    def split(seed: int) -> tuple[TrackPart, Sequence[TrackPart]]:
        rng = np.random.default_rng([seed, 3])
        calibrating, asked = parts(rng)
        rank = random_rank(versions.subjects, rng)

        def part(people: Names, enrolled: Names) -> TrackPart:
            gallery = np.flatnonzero(np.isin(versions.subjects, enrolled) & (rank == 0))
            rows = np.flatnonzero(np.isin(versions.subjects, people) & (rank > 0))
            return TrackPart(
                versions.clean.directions[gallery], versions.subjects[gallery],
                np.concatenate([version.directions[rows] for version in versions.degraded]),
                np.tile(versions.subjects[rows], len(versions.degraded)), np.tile(rows, len(versions.degraded)),
            )  # fmt: skip

        first = shares(calibrating, (0.5, 0.5), rng)[0]
        return part(calibrating, first), [part(asked, half) for half in shares(asked, (0.5, 0.5), rng)]

    return split
