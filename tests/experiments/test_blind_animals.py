"""The blind animals: nobody chooses on an animal that is reported on."""

from __future__ import annotations

import numpy as np
import pytest

from holue.embedding.models.embedding_file import EmbeddingFile
from holue.experiments.experiment import Size
from holue.experiments.sets import chimpanzees_blind
from holue.experiments.sets.chimpanzees import Animals, Recogniser
from holue.experiments.sets.chimpanzees_blind import CANDIDATES, choose, halves, recognised


def made_animals() -> Animals:
    """Forty animals of two places with thirty crops each, told apart by some of their features."""
    rng = np.random.default_rng(0)
    names = [f"{place}/{i:02d}" for place in ("CTai", "CZoo") for i in range(20)]
    who = np.repeat(np.arange(40), 30)
    features = (rng.normal(size=(40, 32))[who] + 0.8 * rng.normal(size=(len(who), 32))).astype(np.float32)
    crops = np.array([f"{i}.png" for i in range(len(who))])
    file = EmbeddingFile(features[:, :16], features, crops, np.array(names)[who], "f00d", "tiny")
    return Animals(file, np.full(len(who), "over 200 px"), {"place": {name: name.split("/")[0] for name in names}})


def test_no_animal_is_in_both_halves_and_either_has_half_of_every_place() -> None:
    choosing, reporting = halves(made_animals())
    first, second = set(choosing.animal.tolist()), set(reporting.animal.tolist())
    assert not first & second
    for half in (first, second):
        assert sorted(name.split("/")[0] for name in half) == ["CTai"] * 10 + ["CZoo"] * 10
    assert len(choosing.level) == len(choosing.animal) == 600
    assert halves(made_animals())[0].animal.tolist() == choosing.animal.tolist(), "the halves are fixed"


def test_the_candidate_with_the_highest_mean_dir_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    dirs = {(CANDIDATES[0], 0): 0.9, (CANDIDATES[0], 1): 0.1, (CANDIDATES[1], 0): 0.6, (CANDIDATES[1], 1): 0.6}
    asked = []

    def known(animals: Animals, recogniser: Recogniser, seed: int, size: Size) -> float:
        asked.append(animals)
        return dirs[recogniser, seed]

    monkeypatch.setattr(chimpanzees_blind, "recognised", known)
    choosing, _ = halves(made_animals())
    assert choose(choosing, Size(), CANDIDATES[:2]) == CANDIDATES[1]
    assert all(animals is choosing for animals in asked)


def test_recognition_on_the_choosing_half_needs_no_quality_head(tmp_path) -> None:
    choosing, _ = halves(made_animals())
    found = recognised(choosing, Recogniser(hidden=0), 0, Size(quick=True, cache_dir=tmp_path))
    assert 0 < found <= 1
