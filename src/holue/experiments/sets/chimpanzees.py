"""The ``chimpanzees`` experiment: a recogniser trained on some animals, which then meets them again, and strangers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from holue.datasets.directory import data_directory
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile, Names
from holue.embedding.training.arcface import Margin, train_arcface_head
from holue.embedding.training.train import TrainingSettings, content_hash
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.cache import cache_location
from holue.experiments.experiment import MAIN, NORM_ONLY, Experiment, Protocols, Size
from holue.experiments.sets.archive import Archive, read_table
from holue.experiments.sets.quality_heads import QualityHeads, TrainingPeople, required_features
from holue.experiments.sets.traits import Traits, most_common, with_traits
from holue.experiments.split import shares
from holue.experiments.versions import Mask, random_rank

FEWEST_IMAGES = 12
"""Of an animal that is enrolled or trained on; those with fewer can only be strangers."""
MOST_IMAGES = 150
ENROLLED = 10
QUICK_IMAGES = 2048
UNSEEN = "enrolled animals that the recogniser never saw"
SIZES = (100, 200)
"""Bounds, in pixels of the original crop, of what counts as small, medium and large."""


@dataclass(frozen=True, eq=False)
class Animals:
    """What a recogniser of human faces sees of each crop, who it shows, how large it was, and what is known of the animals."""

    faces: EmbeddingFile
    level: Names
    traits: Traits  # gender and place

    @property
    def animal(self) -> Names:
        """Whom each crop shows."""
        return self.faces.subject_id

    def take(self, rows: Mask) -> Animals:
        """The crops at these rows."""
        return replace(self, faces=self.faces.take(rows), level=self.level[rows])


def embed_animals(size: Size) -> Animals:
    """Embed the crops of C-Tai and C-Zoo once; later calls only read the cache."""
    folder = data_directory() / "chimpanzees"
    rows = read_table(folder / "labels.csv", ("file", "subset", "identity", "gender", "orig_w", "orig_h"))
    archive = Archive(folder / "faces112.zip", OnnxEmbedder.open("arcface"), size.cache_dir, size.progress)
    if size.quick:
        rows = rows[:QUICK_IMAGES]
    names = [f"{row['subset']}/{row['identity']}" for row in rows]
    levels = [size_level(min(int(row["orig_w"]), int(row["orig_h"]))) for row in rows]
    traits = {
        "gender": most_common((name, row["gender"].lower()) for name, row in zip(names, rows)),
        "place": {name: row["subset"] for name, row in zip(names, rows)},
    }
    return Animals(archive.clean([row["file"] for row in rows], names), np.array(levels), traits)


def size_level(pixels: int) -> str:
    """The level of a crop by its shorter edge.

    >>> size_level(99), size_level(150), size_level(200)
    ('under 100 px', '100 to 200 px', 'over 200 px')
    """
    if pixels < SIZES[0]:
        return f"under {SIZES[0]} px"
    return f"{SIZES[0]} to {SIZES[1]} px" if pixels < SIZES[1] else f"over {SIZES[1]} px"


@dataclass(frozen=True, eq=False)
class Roles:
    """Which animal does what; nobody is in two roles.

    The recogniser knows ``development``, ``evaluation`` and ``heads``; the first two are enrolled in their parts, the last train
    the quality heads. Strangers it has never seen; the rare ones have too few images to be enrolled.
    """

    development: Names
    evaluation: Names
    heads: Names
    development_strangers: Names
    evaluation_strangers: Names
    rare: tuple[Names, ...]

    @classmethod
    def draw(cls, animals: Names, fewest: int, rng: np.random.Generator) -> Roles:
        """Of the animals with enough images 20 and 27 % are enrolled, 16 % train the heads, 17 and 20 % are strangers."""
        names, counts = np.unique(animals, return_counts=True)
        first, second, third, fourth, fifth = shares(names[counts >= fewest], (0.2, 0.27, 0.16, 0.17, 0.2), rng)
        return cls(first, second, third, fourth, fifth, shares(names[counts < fewest], (0.5, 0.5), rng))


@dataclass(frozen=True)
class Recogniser:
    """How the recogniser of animals is trained; how these numbers were chosen is told in ``docs/results.md``."""

    hidden: int = 512
    margin: Margin = field(default_factory=lambda: Margin(0.2, 16.0))
    epochs: int = 20

    def embed(self, animals: Animals, seen: Mask, seed: int, size: Size) -> EmbeddingFile:
        """Every crop in a new embedding, learnt with ArcFace from the features of the crops that are ``seen``."""
        settings = TrainingSettings(epochs=3 if size.quick else self.epochs, held_out=0.0, seed=seed)
        head = train_arcface_head(
            animals.faces.take(seen),
            hidden=self.hidden,
            margin=self.margin,
            settings=settings,
            checkpoint_dir=cache_location(size.cache_dir, "heads"),
        )
        weights = [tensor.numpy() for tensor in head.module.state_dict().values()]
        fingerprint = content_hash(animals.faces.fingerprint, *weights)
        embeddings = head.predict(required_features(animals.faces))
        return replace(animals.faces, embeddings=embeddings, fingerprint=fingerprint, model="chimpanzee head")


@dataclass(frozen=True, eq=False)
class Dealt:
    """The crops of a seed, embedded by a recogniser that learnt from some of them, and which crops do what."""

    file: EmbeddingFile
    roles: Roles
    rank: npt.NDArray[np.int64]
    count: int  # crops enrolled of each animal

    @classmethod
    def of(cls, animals: Animals, seed: int, size: Size, recogniser: Recogniser) -> Dealt:
        """Deal the animals out and train the recogniser on three fifths of the crops of those that it is to know."""
        rng = np.random.default_rng([seed, 3])
        rank = random_rank(animals.animal, rng)
        roles = Roles.draw(animals.animal, FEWEST_IMAGES // 3 if size.quick else FEWEST_IMAGES, rng)
        first = cls(animals.faces, roles, rank, 2 if size.quick else ENROLLED)
        seen = first.shows(roles.development, roles.evaluation, roles.heads) & first.trained
        return replace(first, file=recogniser.embed(animals, seen, seed, size))

    def shows(self, *names: Names) -> Mask:
        """Which crops are of these animals, at most ``MOST_IMAGES`` of each."""
        return np.isin(self.file.subject_id, np.concatenate(names)) & (self.rank < MOST_IMAGES)

    @property
    def trained(self) -> Mask:
        """Of five ranks in a row three are trained on."""
        return self.rank % 5 < 3

    def known(self, people: Names, strangers: Names, rare: Names) -> tuple[Mask, Mask]:
        """Crops enrolled, of animals that the recogniser knows, and crops searched."""
        gallery = self.shows(people) & self.trained & (self.rank < np.ceil(self.count * 5 / 3))
        return gallery, (self.shows(people) & ~self.trained) | self.shows(strangers, rare)

    def unseen(self, strangers: Names, rare: Names) -> tuple[Mask, Mask]:
        """Crops enrolled, of animals that the recogniser never saw, and crops searched."""
        gallery = self.shows(strangers[::2]) & (self.rank < self.count)
        return gallery, self.shows(strangers, rare) & ~gallery


def chimpanzee_protocols(
    animals: Animals, seed: int, size: Size, recogniser: Recogniser | None = None
) -> dict[str, IdentificationProtocol]:
    """The protocols of a seed: animals of the recogniser's training among strangers, and animals it never saw.

    Three fifths of the images of an animal that the recogniser knows train it; ten of these are enrolled. The other two fifths
    are the mated probes, or train the quality heads. Animals that the recogniser never saw are the strangers; in the variant
    half of those with enough images are enrolled, instead of the known ones.
    """
    dealt = Dealt.of(animals, seed, size, recogniser or Recogniser())
    roles, file = dealt.roles, dealt.file
    learning = _several(file.take(dealt.shows(roles.heads) & ~dealt.trained))
    people = TrainingPeople(file.take(dealt.shows(roles.heads) & dealt.trained), learning, learning)
    # A tenth of so few animals would be one, and a fifth of half of them too.
    held_out = max(0.2, 2 / len(roles.heads))
    heads = QualityHeads.train(people, settings=size.training(seed, held_out=held_out), cache_dir=size.cache_dir)

    def part(crops: tuple[Mask, Mask], norm_only: bool = False) -> ProtocolPart:
        gallery, searched = crops
        made = heads.part(file.take(gallery), file.take(searched), animals.level[searched], norm_only=norm_only)
        return with_traits(made, animals.traits)

    def protocol(development: ProtocolPart, evaluation: ProtocolPart) -> IdentificationProtocol:
        notes = (f"seed {seed}", f"heads trained on {len(roles.heads)} other animals")
        return IdentificationProtocol("chimpanzees", development, evaluation, notes)

    development = dealt.known(roles.development, roles.development_strangers, roles.rare[0])
    evaluation = dealt.known(roles.evaluation, roles.evaluation_strangers, roles.rare[1])
    return {
        variant: protocol(part(development, variant == NORM_ONLY), part(evaluation, variant == NORM_ONLY))
        for variant in (MAIN, NORM_ONLY)
    } | {
        UNSEEN: protocol(
            part(dealt.unseen(roles.development_strangers, roles.rare[0])),
            part(dealt.unseen(roles.evaluation_strangers, roles.rare[1])),
        )
    }


def _several(file: EmbeddingFile) -> EmbeddingFile:
    """Samples of animals that have at least two: the others have no genuine pair."""
    names, counts = np.unique(file.subject_id, return_counts=True)
    return file.take(np.isin(file.subject_id, names[counts > 1]))


def _load(size: Size) -> Protocols:
    animals = embed_animals(size)
    return lambda seed: chimpanzee_protocols(animals, seed, size)


TITLE = "Animals: chimpanzee faces, an ArcFace head on the features of a recogniser of human faces"
CHIMPANZEES = Experiment("chimpanzees", TITLE, _load)
