"""The ``glyphs`` experiment: clean renderings enrolled, degraded ones searched for, by the recogniser that ships with holue."""

from __future__ import annotations

import numpy as np

from holue.datasets.glyphs.model import GlyphEmbedder, embed_glyphs, glyph_embedder
from holue.datasets.glyphs.world import glyph_world
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.experiment import MAIN, NORM_ONLY, Experiment, Protocols, Size
from holue.experiments.sets.glyph_network import GlyphTraining, head_people
from holue.experiments.sets.quality_heads import QualityHeads
from holue.experiments.versions import random_rank

ENROLLED = {MAIN: 3, "1 enrolled rendering": 1, NORM_ONLY: 3}
"""Renderings of a glyph in the gallery, by variant."""
QUICK_GLYPHS = 60


def glyph_protocols(model: GlyphEmbedder, seed: int, size: Size) -> dict[str, IdentificationProtocol]:
    """The protocols of a seed: three renderings enrolled or one, and the concentration of the norm alone.

    The glyphs that the shipped network learnt from are fixed, and so are those that train the heads. The seed deals the others
    out: 40 % to development, 60 % to evaluation, half of each enrolled; and it draws every rendering anew, those of the heads
    too.
    """
    count = QUICK_GLYPHS if size.quick else None
    world = glyph_world(seed, subjects=count, enrolled_samples=max(ENROLLED.values()))
    people = head_people(model.embedder, seed=seed, training=GlyphTraining(glyphs=count))
    heads = QualityHeads.train(people, settings=size.training(seed), cache_dir=size.cache_dir)

    files = {
        role: (embed_glyphs(model.embedder, part.gallery), embed_glyphs(model.embedder, part.probes), part.probes.level)
        for role, part in (("development", world.development), ("evaluation", world.evaluation))
    }

    def part(role: str, enrolled: int, norm_only: bool) -> ProtocolPart:
        gallery, probes, levels = files[role]
        first = random_rank(gallery.subject_id, np.random.default_rng([seed, 5])) < enrolled
        return heads.part(gallery.take(first), probes, levels, norm_only=norm_only)

    return {
        variant: IdentificationProtocol(
            "glyphs",
            part("development", enrolled, variant == NORM_ONLY),
            part("evaluation", enrolled, variant == NORM_ONLY),
            (f"seed {seed}", f"heads trained on {len(np.unique(people.learning.subject_id))} other glyphs"),
        )
        for variant, enrolled in ENROLLED.items()
    }


def _load(size: Size) -> Protocols:
    model = glyph_embedder()
    return lambda seed: glyph_protocols(model, seed, size)


GLYPHS = Experiment("glyphs", "Glyphs: characters in many fonts, clean gallery, degraded probes", _load)
