"""``holue train``: what says how good a sample is, from its embedding or its features; and the recogniser of glyphs."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from holue.cli.inputs import keep_inputs
from holue.cli.output import Json, print_json, say
from holue.embedding.heads.norm_head import NormHead, norm_file
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.embedding_folder import load_embedding_folder
from holue.embedding.models.onnx_name import onnx_file
from holue.errors import InvalidParameterError
from holue.progress import progress_bar


class Head(StrEnum):
    """What can be trained; each name has a trainer below."""

    NORM = "norm"
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
    head: Annotated[Head, typer.Argument(metavar="HEAD", help="norm, scf, pfe, scaleface, arcface or glyphs.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Name of the head to write: OUT.onnx and OUT.json; for norm OUT.json alone; for glyphs a folder."
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Embeddings (.npz) with subjects and features, or a folder of .npy; norm needs no features, glyphs no FILE.",
        ),
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
    """Learn, from samples of known subjects, how good a sample is.

    Give FILE people who are neither enrolled nor in your evaluation, several samples each. `holue embed` writes such files.

    `norm` needs only the embeddings, before they are scaled to length 1, and no torch. It fits κ = e^a · length^b, the
    concentration of a sample as a function of the length of its embedding. Example: `holue train norm others.npz --out norm`,
    then `holue apply norm faces.npz --out faces-norm.npz`

    The others are small networks on the bottleneck features of the recogniser. `scf` learns the concentration κ_x of each
    sample, `pfe` a variance per coordinate, `scaleface` a scale inside the ArcFace loss. `arcface` learns a new embedding, for
    subjects that the recogniser was not trained for, such as animals. All but `arcface` leave out subjects with one sample.
    Example: `holue train scf others.npz --out scf`, then `holue apply scf faces.npz --out faces-scf.npz`

    Samples that do not fit into memory are read from a folder with `embeddings.npy`, `features.npy` and `subject_id.npy`, whose
    rows stay on disk until they are used. With `--checkpoints DIR` an interrupted training goes on after its last whole epoch.

    `glyphs` trains the recogniser of the glyph world with its heads: it draws its training images with matplotlib's fonts, and
    takes under ten minutes on one core. Example: `holue train glyphs --out glyph-model`
    """
    if head is Head.GLYPHS:
        _train_glyphs(out, file, hidden, epochs=epochs, seed=seed, checkpoints=checkpoints, json=json)
        return
    if file is None:
        raise InvalidParameterError(f"FILE is missing: {head} is trained on embeddings; holue embed writes them")
    if head is Head.NORM:
        if hidden is not None or checkpoints is not None:
            raise InvalidParameterError("norm fits two numbers, with no network: leave out --hidden and --checkpoints")
        _fit_norm(file, out, json=json)
        return
    path = onnx_file(out)  # before the training: a name that cannot be should not cost it
    for written in (path, path.with_suffix(".json")):
        keep_inputs(written, [file])
    module, name = TRAINERS[head]
    trainer = getattr(import_module(module), name)
    from holue.embedding.training.export import export_head
    from holue.embedding.training.train import TrainingSettings

    samples = load_embedding_folder(file) if file.is_dir() else EmbeddingFile.load(file)
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
        _say_what_follows(told["subjects_left_out"], path)


def _fit_norm(file: Path, out: Path, *, json: bool) -> None:
    norm_file(out)  # before the file is read, as above
    head = NormHead.fit(EmbeddingFile.load(file))
    path = head.save(out)
    if json:
        print_json({"kind": head.kind, "json": str(path), **asdict(head.law), "details": dict(head.details)})
        return
    law, told = head.law, head.details
    say(
        f"κ = {np.exp(law.intercept):.3g} · length^{law.slope:.2f}, fitted to {told['samples']} samples of "
        f"{told['subjects']} subjects, written to {path}"
    )
    if law.slope < 0:
        say("The exponent is negative: this recogniser gives better samples shorter embeddings.")
    _say_what_follows(told["subjects_left_out"], path)


def _say_what_follows(left_out: int, path: Path) -> None:
    if left_out:
        say(f"Left out: {left_out} subjects with one sample, which have nothing to compare it with")
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
