"""The ``chimpanzees-blind`` experiment: the recogniser is chosen on some animals, and reported on others.

    animals     dealt into two halves by a fixed seed, C-Tai and C-Zoo each by itself; no animal is in both
    choosing    on the first half every setting of ``CANDIDATES`` is trained for ``CHOOSING_SEEDS`` seeds; the setting with the
                highest mean DIR at FPIR 0.1 is taken. No uncertainty method is run there.
    reporting   on the second half that setting runs through the protocols of ``chimpanzees``, seed by seed

The rule is code, so that nobody can look at the second half before choosing. What is not blind: which settings are candidates,
and the shares of the animals in each role, come from ``chimpanzees``, which was chosen with all animals in sight.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from holue.embedding.training.arcface import Margin
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.experiment import Experiment, Protocols, Size
from holue.experiments.sets.chimpanzees import Animals, Dealt, Recogniser, chimpanzee_protocols, embed_animals
from holue.experiments.versions import Mask
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery

logger = logging.getLogger(__name__)

CANDIDATES = (
    Recogniser(),
    Recogniser(hidden=0),
    Recogniser(hidden=256),
    Recogniser(margin=Margin(0.3, 32.0)),
    Recogniser(margin=Margin(0.0, 16.0)),
    Recogniser(epochs=40),
)
CHOOSING_SEEDS = (0, 1)
CHOOSING_FPIR = 0.1
HALVES = 18
"""Seed of the two halves."""


def halves(animals: Animals) -> tuple[Animals, Animals]:
    """The animals to choose on, and those to report on; each place gives half of its animals to either."""
    rng = np.random.default_rng(HALVES)
    first: list[str] = []
    for place in sorted(set(animals.traits["place"].values())):
        names = np.array(sorted(name for name, where in animals.traits["place"].items() if where == place))
        first += rng.permutation(names)[: len(names) // 2].tolist()
    chosen = np.isin(animals.animal, first)
    return animals.take(chosen), animals.take(~chosen)


def choose(animals: Animals, size: Size, candidates: Sequence[Recogniser] = CANDIDATES) -> Recogniser:
    """The candidate with the highest mean DIR on these animals."""
    means = []
    for candidate in candidates:
        found = [recognised(animals, candidate, seed, size) for seed in CHOOSING_SEEDS]
        means.append(float(np.mean(found)))
        logger.info("DIR %.3f at FPIR %g: %s", means[-1], CHOOSING_FPIR, candidate)
    return candidates[int(np.argmax(means))]


def recognised(animals: Animals, recogniser: Recogniser, seed: int, size: Size) -> float:
    """DIR at ``CHOOSING_FPIR`` on the evaluation part of a seed."""
    dealt = Dealt.of(animals, seed, size, recogniser)
    roles = dealt.roles

    def part(crops: tuple[Mask, Mask]) -> ProtocolPart:
        gallery, searched = (dealt.file.take(rows) for rows in crops)
        return ProtocolPart(
            Gallery.from_samples(gallery.directions, gallery.subject_id),
            Embeddings.from_samples(searched.directions),
            searched.subject_id,
        )

    protocol = IdentificationProtocol(
        "chimpanzees",
        part(dealt.known(roles.development, roles.development_strangers, roles.rare[0])),
        part(dealt.known(roles.evaluation, roles.evaluation_strangers, roles.rare[1])),
    )
    point = evaluate(protocol, fpir=CHOOSING_FPIR, methods=["acceptance"], n_resamples=2, seed=seed).points[0]
    value = point.recognition["dir"].value
    return float("nan") if value is None else value


def _load(size: Size) -> Protocols:
    choosing, reporting = halves(embed_animals(size))
    recogniser = choose(choosing, size, CANDIDATES[:2] if size.quick else CANDIDATES)
    return lambda seed: chimpanzee_protocols(reporting, seed, size, recogniser)


TITLE = "Animals, blind: the recogniser chosen on half of the chimpanzees, reported on the other half"
CHIMPANZEES_BLIND = Experiment("chimpanzees-blind", TITLE, _load)
