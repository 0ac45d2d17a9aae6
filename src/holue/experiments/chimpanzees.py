"""The ``chimpanzees`` experiment: a small network trained on some animals, then open-set recognition of others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.embedding.arcface import Margin
from holue.embedding.augmentation import Augmentation
from holue.embedding.embedding_file import EmbeddingFile, Names
from holue.embedding.image_network import ImageNetwork, Images, train_arcface_network
from holue.embedding.images import ImageInput
from holue.embedding.train import TrainingSettings, content_hash
from holue.errors import InvalidFileError
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.archive import data_directory, open_zip, read_table
from holue.experiments.cache import cache_location
from holue.experiments.experiment import MAIN, NORM_ONLY, Experiment, Protocols, Size
from holue.experiments.quality_heads import QualityHeads, TrainingPeople
from holue.experiments.split import shares
from holue.experiments.versions import Mask, random_rank

PIXELS = 48
FEWEST_IMAGES = 12
"""Of an animal that is enrolled or trained on; those with fewer can only be strangers."""
MOST_IMAGES = 80
ENROLLED = 5
KNOWN = "animals of the training"
SIZES = (100, 200)
"""Bounds, in pixels of the original crop, of what counts as small, medium and large."""


@dataclass(frozen=True, eq=False)
class Animals:
    """Face crops, who they show, and how large they were."""

    images: Images
    animal: Names
    level: Names


def read_animals(size: Size) -> Animals:
    """The crops of C-Tai and C-Zoo, at the size the network reads."""
    folder = data_directory() / "chimpanzees"
    rows = read_table(folder / "labels.csv", ("file", "subset", "identity", "orig_w", "orig_h"))
    archive, reader = open_zip(folder / "faces112.zip"), ImageInput(PIXELS, PIXELS)
    if size.quick:
        rows = rows[::3]
    images = []
    for row in rows:
        origin = f"{archive.filename}: {row['file']}"
        try:
            content = archive.read(row["file"])
        except KeyError as error:
            raise InvalidFileError(f"{origin}: no such member") from error
        images.append(_resized(np.asarray(reader.decode(content, origin), dtype=np.uint8)))
    return Animals(
        np.stack(images),
        np.array([f"{row['subset']}/{row['identity']}" for row in rows]),
        np.array([size_level(min(int(row["orig_w"]), int(row["orig_h"]))) for row in rows]),
    )


def size_level(pixels: int) -> str:
    """The level of a crop by its shorter edge.

    >>> size_level(99), size_level(150), size_level(200)
    ('under 100 px', '100 to 200 px', 'over 200 px')
    """
    if pixels < SIZES[0]:
        return f"under {SIZES[0]} px"
    return f"{SIZES[0]} to {SIZES[1]} px" if pixels < SIZES[1] else f"over {SIZES[1]} px"


def chimpanzee_protocols(animals: Animals, seed: int, size: Size) -> dict[str, IdentificationProtocol]:
    """The protocols of a seed: animals the network never saw, those of its training in images it never saw, and norm only.

    Half of the animals with enough images train the network, a fifth is the development part and the rest the evaluation part;
    in these two, half of the animals is enrolled. Of the training animals two quarters of the images train the network, one
    trains the quality heads, and one is for probes of known animals. Animals with few images are strangers.
    """
    rng = np.random.default_rng([seed, 3])
    rank = random_rank(animals.animal, rng)
    kept = rank < MOST_IMAGES
    names, counts = np.unique(animals.animal, return_counts=True)
    fewest = FEWEST_IMAGES // 3 if size.quick else FEWEST_IMAGES
    training, development, evaluation = shares(names[counts >= fewest], (0.5, 0.2, 0.3), rng)
    rare = shares(names[counts < fewest], (0.5, 0.5), rng)
    enrolled = {role: shares(some, (0.5, 0.5), rng)[0] for role, some in (("dev", development), ("eval", evaluation))}

    inside = np.isin(animals.animal, training) & kept
    seen = inside & (rank % 4 < 2)
    network = _train(animals, seen, seed, size)
    file = _embedded(network, animals)
    learning = file.take(inside & (rank % 4 == 2))
    heads = QualityHeads.train(
        TrainingPeople(file.take(seen), _several(learning), _several(learning)),
        settings=size.training(seed),
        cache_dir=size.cache_dir,
    )
    count = 2 if size.quick else ENROLLED

    def part(searched: Mask, gallery: Mask, norm_only: bool = False) -> ProtocolPart:
        return heads.part(file.take(gallery), file.take(searched), animals.level[searched], norm_only=norm_only)

    def unseen(people: Names, known: Names, strangers: Names, norm_only: bool) -> ProtocolPart:
        everyone = np.isin(animals.animal, np.concatenate([people, strangers])) & kept
        gallery = np.isin(animals.animal, known) & (rank < count)
        return part(everyone & ~gallery, gallery, norm_only)

    def protocol(evaluated: ProtocolPart, norm_only: bool = False) -> IdentificationProtocol:
        developed = unseen(development, enrolled["dev"], rare[0], norm_only)
        notes = (f"seed {seed}", f"network and heads trained on {len(training)} animals")
        return IdentificationProtocol("chimpanzees", developed, evaluated, notes)

    strangers = np.isin(animals.animal, np.concatenate([evaluation, rare[1]])) & kept
    return {
        MAIN: protocol(unseen(evaluation, enrolled["eval"], rare[1], False)),
        KNOWN: protocol(part((inside & (rank % 4 == 3)) | strangers, seen & (rank < 2 * count))),
        NORM_ONLY: protocol(unseen(evaluation, enrolled["eval"], rare[1], True), True),
    }


def _train(animals: Animals, seen: Mask, seed: int, size: Size) -> ImageNetwork:
    return train_arcface_network(
        animals.images[seen],
        animals.animal[seen],
        first_channels=16,
        margin=Margin(0.2, 16.0),
        augmentation=Augmentation(flip=True, erase=0.2),
        settings=TrainingSettings(
            epochs=2 if size.quick else 30,
            batch_size=64,
            peak_learning_rate=5e-3,
            weight_decay=5e-2,
            held_out=0.0,
            seed=seed,
        ),
        checkpoint_dir=cache_location(size.cache_dir, "networks"),
        progress=size.progress,
    )


def _embedded(network: ImageNetwork, animals: Animals) -> EmbeddingFile:
    embeddings, features = network.predict(animals.images)
    ids = np.array([str(row) for row in range(len(animals.animal))])
    weights = [tensor.numpy() for tensor in network.module.state_dict().values()]
    return EmbeddingFile(embeddings, features, ids, animals.animal, content_hash(*weights), "chimpanzee network")


def _several(file: EmbeddingFile) -> EmbeddingFile:
    """Samples of animals that have at least two: the others have no genuine pair."""
    names, counts = np.unique(file.subject_id, return_counts=True)
    keep: npt.NDArray[np.bool_] = np.isin(file.subject_id, names[counts > 1])
    return file.take(keep)


def _resized(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((PIXELS, PIXELS), Image.Resampling.BILINEAR))


def _load(size: Size) -> Protocols:
    animals = read_animals(size)
    return lambda seed: chimpanzee_protocols(animals, seed, size)


CHIMPANZEES = Experiment("chimpanzees", "Animals: chimpanzee faces, a small network trained on other animals", _load)
