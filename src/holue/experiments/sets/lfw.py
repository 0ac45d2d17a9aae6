"""The ``lfw`` experiment: clean faces enrolled, degraded faces searched for, people with one image as strangers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holue.datasets.degradation import draw_image_degradation
from holue.datasets.directory import data_directory
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile, Names
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.experiment import MAIN, NORM_ONLY, Experiment, Protocols, Size
from holue.experiments.sets.archive import Archive
from holue.experiments.sets.quality_heads import QualityHeads
from holue.experiments.split import shares
from holue.experiments.versions import Versions, joined, random_rank

MOST_IMAGES = 6
"""Of one person: a president's 530 images would otherwise be a tenth of the experiment."""
VERSIONS = 2
"""Degraded versions of every image of people with several."""
QUICK_IMAGES = 1024, 512
"""Of people with several images, and of people with one."""


@dataclass(frozen=True, eq=False)
class Faces:
    """Every embedding the experiment needs: people with several images clean and degraded, strangers degraded."""

    people: Versions
    strangers: EmbeddingFile
    stranger_levels: Names


def embed_faces(size: Size) -> Faces:
    """Embed the archive once; later calls only read the cache."""
    archive = Archive(
        data_directory() / "lfw" / "aligned112.zip", OnnxEmbedder.open("arcface"), size.cache_dir, size.progress
    )
    several, alone = face_names(archive.names)
    if size.quick:
        several, alone = several[: QUICK_IMAGES[0]], alone[: QUICK_IMAGES[1]]
    people = [person_of(name) for name in several]
    strangers = archive.degraded(alone, [person_of(name) for name in alone], draw_image_degradation)
    return Faces(archive.versions(several, people, draw_image_degradation, VERSIONS), *strangers)


def lfw_protocols(faces: Faces, seed: int, size: Size) -> dict[str, IdentificationProtocol]:
    """The protocol of a seed, with the SCF concentration and with that of the norm alone.

    The people with several images train the heads (40 %), or are in the development (25 %) or the evaluation part (35 %), where
    one clean image each is enrolled and the others, degraded, are mated probes; of the strangers 40 and 60 % are in these parts.
    """
    rng = np.random.default_rng([seed, 1])
    subjects = faces.people.subjects
    training, development, evaluation = shares(np.unique(subjects), (0.4, 0.25, 0.35), rng)
    unknown = shares(np.unique(faces.strangers.subject_id), (0.4, 0.6), rng)
    rank = random_rank(subjects, rng)
    heads = QualityHeads.train(
        faces.people.training_people(training, rank, rng), settings=size.training(seed), cache_dir=size.cache_dir
    )

    def part(people: Names, strangers: Names, norm_only: bool) -> ProtocolPart:
        inside, alone = np.isin(subjects, people), np.isin(faces.strangers.subject_id, strangers)
        mated, levels = faces.people.probes(inside & (rank > 0))
        return heads.part(
            faces.people.clean.take(inside & (rank == 0)),
            joined(mated, faces.strangers.take(alone)),
            np.concatenate([levels, faces.stranger_levels[alone]]),
            norm_only=norm_only,
        )

    return {
        variant: IdentificationProtocol(
            "lfw",
            part(development, unknown[0], variant == NORM_ONLY),
            part(evaluation, unknown[1], variant == NORM_ONLY),
            (f"seed {seed}", f"heads trained on {len(training)} other people"),
        )
        for variant in (MAIN, NORM_ONLY)
    }


def _load(size: Size) -> Protocols:
    faces = embed_faces(size)
    return lambda seed: lfw_protocols(faces, seed, size)


LFW = Experiment("lfw", "Faces: LFW, clean gallery, degraded probes", _load)


def face_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The images of people with several, at most ``MOST_IMAGES`` each, and those of people with one."""
    count = Counter(map(person_of, names))
    several, alone = [], []
    taken: Counter[str] = Counter()
    for name in names:
        person = person_of(name)
        if count[person] == 1:
            alone.append(name)
        elif taken[person] < MOST_IMAGES:
            taken[person] += 1
            several.append(name)
    return several, alone


def person_of(name: str) -> str:
    """Whose image a member of the archive is.

    >>> person_of("Ann_Lee/Ann_Lee_0001.jpg")
    'Ann_Lee'
    """
    return name.split("/")[0]
