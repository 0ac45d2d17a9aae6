"""Scene: glyphs enrolled, calibrated on other glyphs and identified; everything the demo tells about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from holue.datasets.glyphs.identities import Glyph
from holue.datasets.glyphs.rendering import Pixels
from holue.datasets.glyphs.world import GlyphPart, GlyphWorld, glyph_world
from holue.evaluation.outcomes import Outcomes
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.subjects import UNKNOWN
from holue.recognition.answer.identifications import Identifications
from holue.recognition.answer.reasons import Reasons
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.reading import Reading
from holue.recognition.recognizer import OpenSetRecognizer

SUBJECTS = 300
"""Enrolled glyphs; two thirds as many other ones are enrolled for calibration."""
METHOD, TARGET_FPIR = "holue-plus", 0.1
CANDIDATES = 3


class Embedded(Protocol):
    """What the model says about n images."""

    @property
    def directions(self) -> npt.NDArray[np.floating]:
        """Embeddings (n, d)."""

    @property
    def concentration(self) -> Float64Array:
        """κ_x (n,)."""


Embed = Callable[[Pixels], Embedded]
"""Images (n, 32, 32) of bytes to their embeddings."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The world, the recogniser, its answers to the evaluation probes and the truth about them."""

    seed: int
    world: GlyphWorld
    recognizer: OpenSetRecognizer
    reading: Reading
    answers: Identifications
    reasons: Reasons
    outcomes: Outcomes
    embed: Embed

    @property
    def part(self) -> GlyphPart:
        """The evaluation part, which all answers are about."""
        return self.world.evaluation

    @property
    def concentrations(self) -> Float64Array:
        """κ_x of every probe."""
        return self.reading.probe_concentrations

    @property
    def p_answer(self) -> Float64Array:
        """The probability of every answer: of the subject where accepted, of "nobody enrolled" where rejected."""
        return np.where(self.outcomes.accepted, self.answers.p_subject, self.answers.p_unknown)

    @cached_property
    def glyphs(self) -> dict[str, Glyph]:
        """Every glyph of the evaluation part by its label."""
        return {glyph.label: glyph for glyph in (*self.part.known, *self.part.unknown)}

    @cached_property
    def certain(self) -> npt.NDArray[np.bool_]:
        """The half of the answers with the lower uncertainty; ties at the middle fall in the order of the probes."""
        order = np.argsort(self.answers.uncertainty, kind="stable")
        certain = np.zeros(len(order), dtype=bool)
        certain[order[: len(order) // 2]] = True
        return certain

    @property
    def error_rates(self) -> dict[str, float]:
        """Share of wrong answers among all, the certain half and the uncertain half."""
        wrong = ~self.outcomes.correct
        halves = {"all": np.ones_like(wrong), "certain_half": self.certain, "uncertain_half": ~self.certain}
        return {name: float(wrong[rows].mean()) for name, rows in halves.items()}

    def read(self, images: Pixels, *, top_k: int) -> Reading:
        """What the gallery says about other images than the probes."""
        embedded = self.embed(images)
        probes = Embeddings.from_samples(embedded.directions, embedded.concentration)
        temperature = self.recognizer.temperature
        return Reading.of(probes, self.reading.search, self.reading.point, temperature=temperature, top_k=top_k)


def make_scene(embed: Embed, *, seed: int = 0, subjects: int = SUBJECTS) -> Scene:
    """Render the world, enrol and calibrate, and answer the probes of the evaluation part."""
    world = glyph_world(seed, subjects=subjects)
    evaluation, development = world.evaluation, world.development
    # More glyphs are enrolled than calibrated on, and strangers find look-alikes more easily: the threshold follows them.
    recognizer = OpenSetRecognizer(method=METHOD, target_fpir=TARGET_FPIR, random_state=seed, hold="fpir")
    recognizer.fit(embed(evaluation.gallery.images).directions, evaluation.gallery.subject_id)
    others = embed(development.probes.images)
    recognizer.calibrate(
        others.directions,
        development.probes.subject_id,
        others.concentration,
        gallery=(embed(development.gallery.images).directions, development.gallery.subject_id),
    )
    probes = embed(evaluation.probes.images)
    answers = recognizer.identify(probes.directions, probes.concentration, top_k=CANDIDATES)
    quality = recognizer.quality_
    assert isinstance(quality, CalibratedQuality)
    reading = Reading.of(
        Embeddings.from_samples(probes.directions, probes.concentration),
        recognizer.gallery_,
        recognizer.operating_point_,
        temperature=recognizer.temperature,
        top_k=CANDIDATES,
    )
    reasons = quality.explain(reading)
    return Scene(seed, world, recognizer, reading, answers, reasons, _outcomes(evaluation, answers), embed)


def _outcomes(part: GlyphPart, answers: Identifications) -> Outcomes:
    truth = part.probes.subject_id
    mated = np.isin(truth, [glyph.label for glyph in part.known])
    named = np.array([subject is not UNKNOWN and subject == label for subject, label in zip(answers.subject, truth)])
    return Outcomes(mated, answers.accepted, named, truth)
