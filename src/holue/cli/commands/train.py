"""``holue train``: heads on the bottleneck features of a recogniser, and the recogniser of glyphs."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from holue.cli.inputs import keep_inputs
from holue.cli.output import Json, print_json, say
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.onnx_name import onnx_file
from holue.errors import InvalidParameterError
from holue.progress import progress_bar


class Head(StrEnum):
    """What can be trained; each name has a trainer below."""

    SCF = "scf"
    PFE = "pfe"
    SCALEFACE = "scaleface"
    ARCFACE = "arcface"
    GLYPHS = "glyphs"


# Named, not imported: torch is loaded only when something is trained.
TRAINERS = {
    Head.SCF: ("holue.embedding.heads.scf", "train_scf"),
    Head.PFE: ("holue.embedding.heads.pfe", "train_pfe"),
    Head.SCALEFACE: ("holue.embedding.heads.scaleface", "train_scaleface"),
    Head.ARCFACE: ("holue.embedding.training.arcface", "train_arcface_head"),
}


def train(
    head: Annotated[Head, typer.Argument(metavar="HEAD", help="scf, pfe, scaleface, arcface or glyphs.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Where to write the head: OUT.onnx and OUT.json, also where OUT has a dot in it; OUT.onnx may be named in full. "
            "For glyphs a folder."
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Embeddings with features and subjects (.npz); glyphs needs none."),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Passes over the training samples.", min=1)] = 20,
    hidden: Annotated[
        int | None, typer.Option(help="Width of the hidden layer.", show_default="64, arcface none", min=0)
    ] = None,
    held_out: Annotated[
        float, typer.Option(help="Share of the subjects held out for early stopping; 0 trains on all.", min=0, max=0.9)
    ] = 0.1,
    seed: Annotated[int, typer.Option(help="Seed of the weights and of the batches.", min=0)] = 0,
    checkpoints: Annotated[Path | None, typer.Option(help="Folder of checkpoints; training resumes from it.")] = None,
    json: Json = False,
) -> None:
    """Train a head on embeddings with features, as `holue embed` writes them.

    `scf` learns the concentration κ_x of each sample by the exact von Mises-Fisher likelihood of its subject's centre; `pfe` a
    variance per coordinate by the mutual likelihood score of pairs; `scaleface` a scale inside the ArcFace loss; `arcface` a new
    embedding, for subjects the recogniser was not made for (animals). The first three leave out subjects with one sample.
    Example: `holue train scf others.npz --out scf`; then `holue apply scf faces.npz --out faces-scf.npz` uses it.

    `glyphs` trains the recogniser of the glyph world from nothing but matplotlib's fonts, with its three heads: a small
    convolutional ArcFace network, in under ten minutes on one core. Example: `holue train glyphs --out glyph-model`
    """
    if head is Head.GLYPHS:
        _train_glyphs(out, file, hidden, epochs=epochs, seed=seed, checkpoints=checkpoints, json=json)
        return
    if file is None:
        raise InvalidParameterError(f"FILE is missing: {head} is trained on embeddings; holue embed writes them")
    path = onnx_file(out)  # before the training: a name that cannot be should not cost it
    for written in (path, path.with_suffix(".json")):
        keep_inputs(written, [file])
    module, name = TRAINERS[head]
    trainer = getattr(import_module(module), name)
    from holue.embedding.training.export import export_head
    from holue.embedding.training.train import TrainingSettings

    samples = EmbeddingFile.load(file)
    quiet = json or not sys.stderr.isatty()
    with nullcontext(None) if quiet else progress_bar("training") as progress:
        trained = trainer(
            samples,
            settings=TrainingSettings(epochs=epochs, held_out=held_out, seed=seed),
            checkpoint_dir=checkpoints,
            progress=progress,
            **({} if hidden is None else {"hidden": hidden}),
        )
    export_head(trained, path)
    if json:
        print_json({"kind": trained.kind, "onnx": str(path), "details": dict(trained.details)})
    else:
        told = trained.details
        say(
            f"{trained.kind} head trained on {told['samples']} samples of {told['subjects']} subjects, written to {path}"
        )
        if told["subjects_left_out"]:
            say(
                f"Left out: {told['subjects_left_out']} subjects with one sample, which have nothing to compare it with"
            )
        say(f"Next: holue apply {path} FILE --out OUT.npz")


def _train_glyphs(
    out: Path, file: Path | None, hidden: int | None, *, epochs: int, seed: int, checkpoints: Path | None, json: bool
) -> None:
    if file is not None or hidden is not None:
        raise InvalidParameterError("glyphs are drawn, not read, by a network of its own: leave out FILE and --hidden")
    from holue.experiments.sets.glyph_network import GlyphTraining, train_glyph_model

    quiet = json or not sys.stderr.isatty()
    with nullcontext(None) if quiet else progress_bar("training the network") as progress:
        record = train_glyph_model(
            out, seed=seed, training=GlyphTraining(epochs=epochs), checkpoint_dir=checkpoints, progress=progress
        )
    if json:
        print_json(record)
        return
    rates = record["evaluation"]["rank_1"]
    say(
        f"Trained on {len(record['network_glyphs'])} glyphs, heads on {len(record['head_glyphs'])} others, written to {out}. "
        f"Rank 1 on glyphs it never saw: {rates['all']:.1%} of all probes, {rates['undamaged']:.1%} of the undamaged."
    )
