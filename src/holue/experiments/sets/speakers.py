"""The ``speakers`` experiment: whole utterances enrolled, short and noisy cuts searched for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holue.datasets.degradation import draw_speech_degradation
from holue.datasets.directory import data_directory
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import Names
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.experiment import MAIN, NORM_ONLY, Experiment, Protocols, Size
from holue.experiments.sets.archive import Archive, read_table
from holue.experiments.sets.quality_heads import QualityHeads
from holue.experiments.sets.traits import Traits, with_traits
from holue.experiments.split import shares
from holue.experiments.versions import Versions, random_rank

VERSIONS = 3
"""Cuts of every utterance."""
QUICK_SPEAKERS = 60
AGES = (10, 18)
"""Bounds, in years, of the age bands."""
ENROLLED = {MAIN: 3, "1 enrolled utterance": 1, "5 enrolled utterances": 5, NORM_ONLY: 3}
"""Utterances of a subject in the gallery, by variant."""


@dataclass(frozen=True, eq=False)
class Voices:
    """Every embedding the experiment needs, which speakers are on the official test list, and who the speakers are."""

    utterances: Versions
    test_speakers: Names
    traits: Traits  # gender and age band


def embed_voices(size: Size) -> Voices:
    """Embed the archive once; later calls only read the cache."""
    folder = data_directory() / "speechocean"
    rows = read_table(folder / "utterances.csv", ("file", "speaker", "split", "gender", "age"))
    archive = Archive(folder / "utterances.zip", OnnxEmbedder.open("campplus"), size.cache_dir, size.progress)
    if size.quick:
        chosen = {row["speaker"] for row in rows if row["split"] == "train"}
        few = {*sorted(chosen)[:QUICK_SPEAKERS], *sorted({row["speaker"] for row in rows} - chosen)[:QUICK_SPEAKERS]}
        rows = [row for row in rows if row["speaker"] in few]
    names, speakers = [row["file"] for row in rows], [row["speaker"] for row in rows]
    return Voices(
        archive.versions(names, speakers, draw_speech_degradation, VERSIONS),
        np.unique([row["speaker"] for row in rows if row["split"] == "test"]),
        {
            "gender": {row["speaker"]: row["gender"] for row in rows},
            "age": {row["speaker"]: age_band(int(row["age"])) for row in rows},
        },
    )


def age_band(years: int) -> str:
    """The band of an age: half of the speakers are children.

    >>> age_band(9), age_band(17), age_band(18)
    ('under 10', '10 to 17', 'adult')
    """
    if years < AGES[0]:
        return f"under {AGES[0]}"
    return f"{AGES[0]} to {AGES[1] - 1}" if years < AGES[1] else "adult"


def speaker_protocols(voices: Voices, seed: int, size: Size) -> dict[str, IdentificationProtocol]:
    """The protocols of a seed: three utterances enrolled, one or five, and the concentration of the norm alone.

    The official train speakers train the heads (40 %) or are the development part, the official test speakers are the
    evaluation part. In each part half of the speakers are enrolled, by whole utterances; cuts of all others are the probes.
    """
    rng = np.random.default_rng([seed, 2])
    subjects = voices.utterances.subjects
    known = np.setdiff1d(np.unique(subjects), voices.test_speakers)
    training, development = shares(known, (0.4, 0.6), rng)
    enrolled = {
        role: shares(some, (0.5, 0.5), rng)[0] for role, some in (("dev", development), ("eval", voices.test_speakers))
    }
    rank = random_rank(subjects, rng)
    heads = QualityHeads.train(
        voices.utterances.training_people(training, rank, rng), settings=size.training(seed), cache_dir=size.cache_dir
    )

    def part(people: Names, known_people: Names, count: int, norm_only: bool) -> ProtocolPart:
        # Strangers give as many probes as the enrolled: both kinds of error then weigh alike.
        searched = np.isin(subjects, people) & (rank >= count)
        gallery = np.isin(subjects, known_people) & (rank < count)
        made = heads.part(
            voices.utterances.clean.take(gallery), *voices.utterances.probes(searched), norm_only=norm_only
        )
        return with_traits(made, voices.traits)

    return {
        variant: IdentificationProtocol(
            "speakers",
            part(development, enrolled["dev"], count, variant == NORM_ONLY),
            part(voices.test_speakers, enrolled["eval"], count, variant == NORM_ONLY),
            (f"seed {seed}", f"heads trained on {len(training)} other speakers"),
        )
        for variant, count in ENROLLED.items()
    }


def _load(size: Size) -> Protocols:
    voices = embed_voices(size)
    return lambda seed: speaker_protocols(voices, seed, size)


SPEAKERS = Experiment(
    "speakers", "Voices: speechocean762, whole utterances enrolled, short noisy cuts searched for", _load
)
