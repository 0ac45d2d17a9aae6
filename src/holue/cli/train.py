"""``holue train``: quality heads on the bottleneck features of a recogniser."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from holue.cli.output import Json, console, print_json
from holue.embedding.embedding_file import EmbeddingFile
from holue.embedding.progress import progress_bar

train = typer.Typer(
    help="Train a head on embeddings with features, as `holue embed` writes them.", no_args_is_help=True
)

Embedded = Annotated[Path, typer.Argument(metavar="FILE", help="Embeddings with features and subjects (.npz).")]
Out = Annotated[Path, typer.Option(help="Where to write the head: OUT.onnx and OUT.json.")]
Epochs = Annotated[int, typer.Option(help="Passes over the training samples.", min=1)]
Hidden = Annotated[int, typer.Option(help="Width of the hidden layer.", min=0)]
Seed = Annotated[int, typer.Option(help="Seed of the weights and of the batches.")]
Checkpoints = Annotated[Path | None, typer.Option(help="Folder of checkpoints; training resumes from it.")]


@train.command()
def scf(
    file: Embedded,
    out: Out,
    epochs: Epochs = 20,
    hidden: Hidden = 64,
    seed: Seed = 0,
    checkpoints: Checkpoints = None,
    json: Json = False,
) -> None:
    """Train SCF: the concentration κ_x of each sample, by the exact von Mises-Fisher likelihood of its subject's centre."""
    from holue.embedding.scf import train_scf

    _train(train_scf, file, out, epochs, hidden, seed, checkpoints, json)


@train.command()
def pfe(
    file: Embedded,
    out: Out,
    epochs: Epochs = 20,
    hidden: Hidden = 64,
    seed: Seed = 0,
    checkpoints: Checkpoints = None,
    json: Json = False,
) -> None:
    """Train PFE: a variance per coordinate of each sample, by the mutual likelihood score of pairs of one subject."""
    from holue.embedding.pfe import train_pfe

    _train(train_pfe, file, out, epochs, hidden, seed, checkpoints, json)


@train.command()
def scaleface(
    file: Embedded,
    out: Out,
    epochs: Epochs = 20,
    hidden: Hidden = 64,
    seed: Seed = 0,
    checkpoints: Checkpoints = None,
    json: Json = False,
) -> None:
    """Train ScaleFace: the scale of each sample inside the ArcFace loss, which serves as its quality."""
    from holue.embedding.scaleface import train_scaleface

    _train(train_scaleface, file, out, epochs, hidden, seed, checkpoints, json)


@train.command()
def arcface(
    file: Embedded,
    out: Out,
    epochs: Epochs = 20,
    hidden: Hidden = 0,
    seed: Seed = 0,
    checkpoints: Checkpoints = None,
    json: Json = False,
) -> None:
    """Train an ArcFace head: a new embedding from the features, for subjects the recogniser was not made for (animals)."""
    from holue.embedding.arcface import train_arcface_head

    _train(train_arcface_head, file, out, epochs, hidden, seed, checkpoints, json)


def _train(
    trainer: Any, file: Path, out: Path, epochs: int, hidden: int, seed: int, checkpoints: Path | None, json: bool
) -> None:
    from holue.embedding.export import export_head
    from holue.embedding.train import TrainingSettings

    samples = EmbeddingFile.load(file)
    quiet = json or not sys.stderr.isatty()
    with nullcontext(None) if quiet else progress_bar("training") as progress:
        head = trainer(
            samples,
            hidden=hidden,
            settings=TrainingSettings(epochs=epochs, seed=seed),
            checkpoint_dir=checkpoints,
            progress=progress,
        )
    path = export_head(head, out)
    if json:
        print_json({"kind": head.kind, "onnx": str(path), "details": dict(head.details)})
    else:
        console.print(f"{head.kind} head trained on {len(samples.embeddings)} samples, written to {path}")
