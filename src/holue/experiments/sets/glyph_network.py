"""The glyph model: a small ArcFace network with SCF, PFE and ScaleFace heads, trained from nothing but fonts."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from holue.artifact import write_text
from holue.datasets.degradation import ImageLevels
from holue.datasets.glyphs.identities import Glyph
from holue.datasets.glyphs.model import NETWORK, RECORD, GlyphEmbedder, embed_glyphs, file_checksum, model_files
from holue.datasets.glyphs.samples import GLYPH_LEVELS, GlyphSamples, draw_samples, joined_samples
from holue.datasets.glyphs.world import GlyphPart, glyph_world, glyphs_for
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.training.arcface import Margin
from holue.embedding.training.class_centres import ClassCentres
from holue.embedding.training.export import export_head, export_network
from holue.embedding.training.images.augmentation import Augmentation
from holue.embedding.training.images.image_network import train_arcface_network
from holue.embedding.training.train import TrainingSettings
from holue.errors import InvalidFileError
from holue.experiments.sets.quality_heads import QualityHeads, TrainingPeople
from holue.progress import Progress

FIRST_CHANNELS = 16
MARGIN = Margin(angle=0.2, scale=24.0)
# Smaller than for photographs: where a mark stands and how large it is tells characters apart.
AUGMENTATION = Augmentation(rotation=4, zoom=0.05, shift=0.03, brightness=0.1, contrast=0.3, erase=0.25)
HARSHER = ImageLevels((32, 20, 15, 11), (0.6, 1.2), (25.0, 50.0), (0.08, 0.16), sizes_only=0.5)
"""What the network learns from is damaged a little more than what it will meet; its heads learn from the latter."""
PACKAGES = ("holue", "numpy", "torch", "onnxruntime", "matplotlib", "pillow")


@dataclass(frozen=True)
class GlyphTraining:
    """How much is drawn and how long it is looked at: renderings per glyph for the network, and for the heads upon it."""

    epochs: int = 20
    clean: int = 6
    degraded: int = 10
    references: int = 6
    learning: int = 20
    glyphs: int | None = None

    def chosen(self, role: str) -> tuple[Glyph, ...]:
        """The glyphs of a role, the first few of them where ``glyphs`` says so."""
        return glyphs_for(role)[: self.glyphs]


def train_glyph_model(
    folder: str | Path,
    *,
    seed: int = 0,
    training: GlyphTraining | None = None,
    checkpoint_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train the network on one set of glyphs, its heads on another, export both, and measure on those of neither.

    Writes what :meth:`GlyphEmbedder.load` reads, and returns the record: command, seed, versions, checksums, counts and rates.
    """
    folder, training = Path(folder), training or GlyphTraining()
    if folder.exists() and not folder.is_dir():
        raise InvalidFileError(f"{folder}: is a file; choose a folder for the model")
    checkpoints = None if checkpoint_dir is None else Path(checkpoint_dir)
    samples = _mixed_samples(training.chosen("network"), training.clean, training.degraded, seed, HARSHER)
    network = train_arcface_network(
        samples.images,
        samples.subject_id,
        first_channels=FIRST_CHANNELS,
        margin=MARGIN,
        augmentation=AUGMENTATION,
        settings=TrainingSettings(
            epochs=training.epochs, batch_size=128, peak_learning_rate=5e-3, weight_decay=5e-2, held_out=0.05, seed=seed
        ),
        checkpoint_dir=checkpoints,
        progress=progress,
    )
    export_network(network, folder / NETWORK)
    embedder = OnnxEmbedder.open(folder / f"{NETWORK}.toml", batch_size=256)
    people = head_people(embedder, seed=seed, training=training)
    head_settings = TrainingSettings(epochs=min(training.epochs, TrainingSettings.epochs), seed=seed)
    heads = QualityHeads.train(people, settings=head_settings, cache_dir=checkpoints)
    for head in (heads.scf, heads.pfe, heads.scaleface):
        export_head(head, folder / head.kind)
    record: dict[str, Any] = {
        "command": f"holue train glyphs --seed {seed} --epochs {training.epochs}",
        "seed": seed,
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        "sha256": {name: file_checksum(folder / name) for name in model_files()},
        "norm_concentration": json.loads(heads.norm.to_json()),
        "network_glyphs": [glyph.label for glyph in training.chosen("network")],
        "network_samples": len(samples),
        "head_glyphs": [glyph.label for glyph in training.chosen("heads")],
        "head_samples": len(people.learning),
        "epochs": len(network.history.training_loss),
        "best_epoch": network.history.best_epoch,
    }
    _write(record, folder)
    measured = GlyphEmbedder.load(folder)
    world = glyph_world(seed, subjects=training.glyphs)
    record["evaluation"] = {
        "world": f"glyph_world({seed})",
        "enrolled": len(world.evaluation.known),
        "mated_probes": int(_mated(world.evaluation).sum()),
        "rank_1": rank_1_by_size(measured, world.evaluation),
    }
    _write(record, folder)
    return record


def head_people(embedder: OnnxEmbedder, *, seed: int, training: GlyphTraining) -> TrainingPeople:
    """What the heads learn from: clean references, and other renderings of the same glyphs, good and poor.

    The network has seen none of these glyphs: of its own training samples it would be too sure.
    """
    glyphs = training.chosen("heads")
    references = embed_glyphs(embedder, draw_samples(glyphs, training.references, seed=seed))
    clean, degraded, first = training.learning // 5, training.learning, training.references
    learning = embed_glyphs(embedder, _mixed_samples(glyphs, clean, degraded, seed, GLYPH_LEVELS, first=first))
    return TrainingPeople(references, learning, learning)


def rank_1_by_size(model: GlyphEmbedder, part: GlyphPart) -> dict[str, float]:
    """The share of mated probes whose nearest enrolled glyph is their own: of all, undamaged, and by size."""
    gallery, probes = (embed_glyphs(model.embedder, samples) for samples in (part.gallery, part.probes))
    centres = ClassCentres.from_samples(gallery.embeddings, gallery.subject_id)
    nearest = centres.subjects[(probes.directions @ centres.directions.T).argmax(axis=1)]
    right, mated, level = nearest == probes.subject_id, _mated(part), part.probes.level
    groups = {"all": mated, "undamaged": mated & (level == f"{GLYPH_LEVELS.sizes[0]} px")}
    groups |= {f"{size} px": mated & np.char.startswith(level, f"{size} px") for size in GLYPH_LEVELS.sizes}
    return {name: round(float(right[rows].mean()), 4) for name, rows in groups.items() if rows.any()}


def _mixed_samples(
    glyphs: tuple[Glyph, ...], clean: int, degraded: int, seed: int, levels: ImageLevels, *, first: int = 0
) -> GlyphSamples:
    return joined_samples(
        draw_samples(glyphs, clean, seed=seed, first=first),
        draw_samples(glyphs, degraded, seed=seed, levels=levels, first=first + clean),
    )


def _mated(part: GlyphPart) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.isin(part.probes.subject_id, [glyph.label for glyph in part.known])


def _write(record: dict[str, Any], folder: Path) -> None:
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    write_text(folder / RECORD, text + "\n")
