"""Answer study: do the probabilities of answers come true, and do their reasons name the cause that was planted?

Every set has disjoint development people, who calibrate, and evaluation people, who are enrolled and identified. The
concentration is the one from the embedding's length (for glyphs that of the shipped head), so that no head needs training. On
speech and glyphs each half of the evaluation people is enrolled in turn, and the other half are the strangers.

Planted causes, beside the answers of the evaluation probes:

    at the threshold     |s − τ| < 0.01, accepted and rejected
    half-way             the mean of the templates of two enrolled subjects, where it is accepted
    rejected, noisy      degraded probes of enrolled subjects that were rejected, |s − τ| ≥ 0.01

and, for comparison, rejected probes of enrolled subjects that were not degraded, and rejected strangers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from holue.datasets.degradation import draw_image_degradation
from holue.datasets.directory import data_directory
from holue.datasets.glyphs.model import glyph_embedder
from holue.datasets.glyphs.samples import draw_samples
from holue.datasets.glyphs.world import GlyphPart, glyph_world
from holue.embedding.heads.norm_concentration import NormConcentration
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile, Names
from holue.embedding.training.class_centres import ClassCentres
from holue.evaluation.metrics.calibration_error import expected_calibration_error, squared_calibration_error
from holue.experiments.experiment import Size
from holue.experiments.sets.archive import Archive
from holue.experiments.sets.lfw import face_names, person_of
from holue.experiments.sets.speakers import embed_voices
from holue.experiments.split import shares
from holue.experiments.versions import Versions, random_rank
from holue.gallery.embeddings import Float64Array
from holue.recognition.answer.identifications import Identifications
from holue.recognition.recognizer import OpenSetRecognizer

TARGET_FPIR = 0.05
AT_THRESHOLD = 0.01
HALF_WAY = 1000
ENROLLED_GLYPHS = 3
ENROLLED_UTTERANCES = 3
HALVINGS = 2
"""How often the evaluation speakers are divided into two halves, each of which is enrolled."""
CLAIMS = ("best candidate", "nobody")
CAUSES = ("boundary", "look-alike", "sample", "none")
CHANCE_DRAWS = 20


@dataclass(frozen=True, eq=False)
class Part:
    """Templates' samples and probes of one part, with whom they show and how sharp each probe is."""

    gallery: npt.NDArray[np.floating]
    gallery_subjects: Names
    probes: npt.NDArray[np.floating]
    probe_subjects: Names
    concentration: Float64Array
    degraded: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Claims:
    """Probabilities, whether what they claim came true, and the person behind each answer."""

    probability: Float64Array
    came_true: npt.NDArray[np.bool_]
    person: Names

    @classmethod
    def joined(cls, some: Sequence[Claims]) -> Claims:
        """All of them."""
        return cls(*(np.concatenate([getattr(one, field) for one in some]) for field in cls.__dataclass_fields__))

    @property
    def error(self) -> float:
        """The expected calibration error, 15 bins of equal width."""
        return expected_calibration_error(self.probability, correct=self.came_true)

    @property
    def squared_error(self) -> float:
        """The mean squared calibration error without the part that chance adds."""
        return squared_calibration_error(self.probability, correct=self.came_true, person=self.person)

    def by_chance(self, rng: np.random.Generator) -> float:
        """The mean :attr:`error` of truths that are drawn with these very probabilities."""
        draws = (rng.random(len(self.probability)) < self.probability for _ in range(CHANCE_DRAWS))
        return float(np.mean([expected_calibration_error(self.probability, correct=truth) for truth in draws]))


@dataclass(frozen=True, eq=False)
class AnswerResult:
    """One split of one set, with or without concentrations: what was claimed, and named causes by planted cause."""

    claims: dict[str, Claims]  # by what is claimed: CLAIMS
    named: dict[str, dict[str, int]]

    @classmethod
    def joined(cls, some: Sequence[AnswerResult]) -> AnswerResult:
        """The answers of several galleries as those of one."""
        return cls(
            {claim: Claims.joined([one.claims[claim] for one in some]) for claim in CLAIMS},
            {
                planted: {cause: sum(one.named[planted][cause] for one in some) for cause in CAUSES}
                for planted in some[0].named
            },
        )


Split = Callable[[int], tuple[Part, Sequence[Part]]]
"""A seed → the development part and the evaluation parts."""


def study(development: Part, evaluations: Sequence[Part], *, concentrations: bool, seed: int = 0) -> AnswerResult:
    """Calibrate on one part, identify the others, and compare probabilities and reasons with the truth."""
    rng = np.random.default_rng(seed)
    return AnswerResult.joined([_studied(development, part, concentrations, seed, rng) for part in evaluations])


def _studied(
    development: Part, evaluation: Part, concentrations: bool, seed: int, rng: np.random.Generator
) -> AnswerResult:
    recognizer = OpenSetRecognizer("holue-plus", target_fpir=TARGET_FPIR, hold="fpir", random_state=seed)
    recognizer.fit(evaluation.gallery, evaluation.gallery_subjects)
    recognizer.calibrate(
        development.probes,
        development.probe_subjects,
        development.concentration if concentrations else None,
        gallery=(development.gallery, development.gallery_subjects),
    )
    answers = recognizer.identify(evaluation.probes, evaluation.concentration if concentrations else None)
    person = evaluation.probe_subjects
    mated = np.isin(person, evaluation.gallery_subjects)
    best = answers.candidate_subjects[:, 0] == person
    near = np.abs(answers.score - recognizer.operating_point_.threshold) < AT_THRESHOLD
    missed = mated & answers.rejected & ~near
    half_way = _half_way(recognizer, evaluation, concentrations, rng)
    planted = {
        "at the threshold, accepted": answers[near & answers.accepted],
        "at the threshold, rejected": answers[near & answers.rejected],
        "half-way": half_way[half_way.accepted],
        "rejected, noisy": answers[missed & evaluation.degraded],
        "rejected, not degraded": answers[missed & ~evaluation.degraded],
        "strangers, rejected": answers[~mated & answers.rejected & ~near],
    }
    return AnswerResult(
        {
            "best candidate": Claims(answers.p_subject, best, person),
            "nobody": Claims(answers.p_unknown, ~mated, person),
        },
        {name: count_causes(some.reason) for name, some in planted.items()},
    )


def count_causes(sentences: Sequence[str] | npt.NDArray[np.str_]) -> dict[str, int]:
    """How many sentences name each cause.

    >>> count_causes(["clear", "between ann and bob: 0.50 and 0.45", "poor sample: concentration 5, typical 90"])
    {'boundary': 0, 'look-alike': 1, 'sample': 1, 'none': 1}
    """
    counted = dict.fromkeys(CAUSES, 0)
    for sentence in sentences:
        if sentence.startswith("between "):
            counted["look-alike"] += 1
        elif "the threshold" in sentence:
            counted["boundary"] += 1
        elif "concentration" in sentence:
            counted["sample"] += 1
        else:
            counted["none"] += 1
    return counted


def _half_way(
    recognizer: OpenSetRecognizer, part: Part, concentrations: bool, rng: np.random.Generator
) -> Identifications:
    templates = recognizer.gallery_.directions.astype(np.float64)
    pairs = rng.integers(len(templates), size=(HALF_WAY, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    middle = templates[pairs[:, 0]] + templates[pairs[:, 1]]
    kappa = np.full(len(middle), np.median(part.concentration)) if concentrations else None
    return recognizer.identify(middle, kappa)


# -- the sets -----------------------------------------------------------------------------------------------------------


def glyph_parts(size: Size) -> Iterator[tuple[str, Split]]:
    """Characters: clean renderings enrolled, degraded ones searched for; each half of the evaluation characters is enrolled."""
    model = glyph_embedder()

    def part(some: GlyphPart) -> Part:
        gallery, probes = model.embed(some.gallery), model.embed(some.probes)
        everything = np.ones(len(some.probes), dtype=bool)
        return Part(
            gallery.directions,
            some.gallery.subject_id,
            probes.directions,
            some.probes.subject_id,
            probes.concentration,
            everything,
        )

    def split(seed: int) -> tuple[Part, Sequence[Part]]:
        world = glyph_world(seed, enrolled_samples=ENROLLED_GLYPHS)
        others = draw_samples(world.evaluation.unknown, ENROLLED_GLYPHS, seed=seed)
        first = part(world.evaluation)
        second = replace(first, gallery=model.embed(others).directions, gallery_subjects=others.subject_id)
        return part(world.development), (first, second)

    yield "glyphs", split


def face_parts(size: Size) -> Iterator[tuple[str, Split]]:
    """LFW: one clean face enrolled; clean, degraded or both kinds of faces searched for."""
    path = data_directory() / "lfw" / "aligned112.zip"
    archive = Archive(path, OnnxEmbedder.open("arcface"), size.cache_dir, size.progress)
    several, alone = face_names(archive.names)
    people, strangers = ([person_of(name) for name in names] for names in (several, alone))
    versions = archive.versions(several, people, draw_image_degradation, 1)
    lonely = archive.clean(alone, strangers), archive.degraded(alone, strangers, draw_image_degradation)[0]
    kinds = {"lfw, clean probes": (0,), "lfw, degraded probes": (1,), "lfw, clean and degraded probes": (0, 1)}

    def split(kind: tuple[int, ...], seed: int) -> tuple[Part, Sequence[Part]]:
        rng = np.random.default_rng([seed, 1])
        training, development, evaluation = shares(np.unique(versions.subjects), (0.4, 0.25, 0.35), rng)
        unknown = shares(np.unique(np.array(strangers)), (0.4, 0.6), rng)
        rank = random_rank(versions.subjects, rng)
        law = _norm_law(versions, training, rank, rng)

        def part(known: Names, others: Names) -> Part:
            inside, outside = np.isin(versions.subjects, known), np.isin(lonely[0].subject_id, others)
            both = (versions.clean, versions.degraded[0])
            probes = [one for i in kind for one in (both[i].take(inside & (rank > 0)), lonely[i].take(outside))]
            degraded = np.concatenate([np.full(len(one), i == 1) for one, i in zip(probes, np.repeat(kind, 2))])
            return _part(versions.clean.take(inside & (rank == 0)), probes, degraded, law)

        return part(development, unknown[0]), (part(evaluation, unknown[1]),)

    for name, kind in kinds.items():
        yield name, lambda seed, kind=kind: split(kind, seed)  # type: ignore[misc]


def voice_parts(size: Size) -> Iterator[tuple[str, Split]]:
    """speechocean762: three whole utterances enrolled, short noisy cuts searched for; each half of the speakers is enrolled."""
    voices = embed_voices(size)
    versions = voices.utterances

    def split(seed: int) -> tuple[Part, Sequence[Part]]:
        rng = np.random.default_rng([seed, 2])
        others = np.setdiff1d(np.unique(versions.subjects), voices.test_speakers)
        training, development = shares(others, (0.4, 0.6), rng)
        rank = random_rank(versions.subjects, rng)
        law = _norm_law(versions, training, rank, rng)

        def part(people: Names, enrolled: Names) -> Part:
            gallery = np.isin(versions.subjects, enrolled) & (rank < ENROLLED_UTTERANCES)
            searched = np.isin(versions.subjects, people) & (rank >= ENROLLED_UTTERANCES)
            probes = [version.take(searched) for version in versions.degraded]
            return _part(versions.clean.take(gallery), probes, np.ones(sum(map(len, probes)), dtype=bool), law)

        calibrating = part(development, shares(development, (0.5, 0.5), rng)[0])
        halves = [half for _ in range(HALVINGS) for half in shares(voices.test_speakers, (0.5, 0.5), rng)]
        return calibrating, [part(voices.test_speakers, half) for half in halves]

    yield "speechocean762", split


SETS: dict[str, Callable[[Size], Iterator[tuple[str, Split]]]] = {
    "glyphs": glyph_parts,
    "lfw": face_parts,
    "speakers": voice_parts,
}


def _norm_law(
    versions: Versions, training: Names, rank: npt.NDArray[np.int64], rng: np.random.Generator
) -> NormConcentration:
    people = versions.training_people(training, rank, rng)
    centres = ClassCentres.from_samples(people.references.embeddings, people.references.subject_id)
    return NormConcentration.fit(people.learning.embeddings, people.learning.subject_id, centres=centres)


def _part(
    gallery: EmbeddingFile, probes: Sequence[EmbeddingFile], degraded: npt.NDArray[np.bool_], law: NormConcentration
) -> Part:
    embeddings = np.concatenate([one.embeddings for one in probes])
    return Part(
        gallery.embeddings,
        gallery.subject_id,
        embeddings,
        np.concatenate([one.subject_id for one in probes]),
        law.transform(embeddings),
        degraded,
    )
