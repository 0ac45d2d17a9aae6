"""Whale: the paper's protocol on Happywhale's individuals (appendix "Whale identification").

Built from the competition's ``train.csv`` (columns ``image``, ``species``, ``individual_id``; the test
images have no labels): 5000 individuals drawn at random are for development, the rest for evaluation.
Individuals with one image are non-mated. The images of each other individual are shuffled and halved: one
template is enrolled, the other, which takes the odd image, is a mated probe.

The table has 15 587 individuals, 9 258 of them with one image. Seed 1 gives the paper's counts exactly:
2985 non-mated and 2015 enrolled for development, 6273 and 4314 for evaluation.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from holue.datasets.formats.lists import PartLists, ProtocolLists, TemplateList
from holue.datasets.formats.table import Strings, read_csv
from holue.datasets.protocols.ijb import read_embs
from holue.errors import InvalidFileError, InvalidParameterError
from holue.evaluation.protocol import IdentificationProtocol, listed

N_DEVELOPMENT = 5000
PAPER_SEED = 1
SOURCE = "happywhale"


def load_whale(
    table: str | Path,
    embeddings: str | Path,
    *,
    seed: int = PAPER_SEED,
    n_development: int = N_DEVELOPMENT,
    weighting: str = "uniform",
) -> IdentificationProtocol:
    """``train.csv`` and embeddings → protocol.

    Embeddings are found by their ``sample_id`` (the image name); without it row i belongs to row i of the
    table.
    """
    lists = read_whale(table, seed=seed, n_development=n_development)
    samples = read_embs(embeddings)
    if samples.sample_id is None:
        images = read_table(table)[0]
        if len(samples) != len(images):
            raise InvalidFileError(
                f"{samples.origin}: {len(samples)} embeddings for the {len(images)} images of {table}; "
                "add the key 'sample_id' with the image names"
            )
        samples = replace(samples, sample_id=images)
    return lists.with_samples(samples, weighting=weighting)


def read_whale(table: str | Path, *, seed: int = PAPER_SEED, n_development: int = N_DEVELOPMENT) -> ProtocolLists:
    """``train.csv`` → lists; save them with :func:`holue.datasets.formats.protocol_file.save_lists`."""
    images, individuals = read_table(table)
    lists = build_whale(images, individuals, np.random.default_rng(seed), n_development=n_development)
    return replace(lists, settings={"seed": seed, **lists.settings})


def read_table(path: str | Path) -> tuple[Strings, Strings]:
    """Image names and the individual each shows."""
    columns = read_csv(path, columns=("image", "species", "individual_id"))
    images = columns["image"]
    names, counts = np.unique(images, return_counts=True)
    if (counts > 1).any():
        raise InvalidFileError(f"{path}: column 'image' repeats {listed(names[counts > 1])}")
    return images, columns["individual_id"]


def build_whale(
    images: Strings, individuals: Strings, rng: np.random.Generator, *, n_development: int = N_DEVELOPMENT
) -> ProtocolLists:
    """The construction above.

    >>> images = np.array([f"{i}.jpg" for i in range(9)])
    >>> animals = np.array(list("aabbccdef"))
    >>> lists = build_whale(images, animals, np.random.default_rng(1), n_development=3)
    >>> lists.evaluation.counts["mated_probes"] + lists.development.counts["mated_probes"]
    3
    """
    subjects, owner, counts = np.unique(individuals, return_inverse=True, return_counts=True)
    if not 0 < n_development < len(subjects):
        raise InvalidParameterError(
            f"n_development must lie between 0 and the table's {len(subjects)} individuals, got {n_development}"
        )
    development = np.zeros(len(subjects), dtype=bool)
    development[rng.choice(len(subjects), n_development, replace=False)] = True

    order = np.lexsort((rng.random(len(owner)), owner))
    owner = owner[order]
    place = np.arange(len(owner)) - np.searchsorted(owner, owner)
    enrolled = place < counts[owner] // 2
    # One template per individual and role; individuals with one image have no gallery template.
    template = np.where(enrolled, owner, len(subjects) + owner)
    table = TemplateList(template, individuals[order], images[order], origin="Whale construction")
    for_development, for_evaluation = (
        PartLists(table.where(of_part & enrolled), table.where(of_part & ~enrolled), SOURCE)
        for of_part in (development[owner], ~development[owner])
    )
    return ProtocolLists("whale", for_development, for_evaluation, {"n_development": n_development})
