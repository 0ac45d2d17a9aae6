"""``holue embed``: images or recordings → one file of embeddings."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from holue.cli.output import Json, print_json, say
from holue.embedding.embed import embed_to_file
from holue.progress import progress_bar

MOST_NAMED = 5


def embed(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A preset (arcface, campplus), an ONNX file with a TOML beside it, or that TOML."
        ),
    ],
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT", help="Folders, zips, lists (.txt), or single files.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write.")],
    detect: Annotated[
        str | None,
        typer.Option(
            metavar="DETECTOR",
            help="The inputs are whole photographs or long recordings: find the faces with yunet, the speech with silero, or "
            "with another ONNX file of these two models. yunet is yunet.onnx in the folder HOLUE_MODELS; silero is installed by "
            "pip install --no-deps silero-vad.",
        ),
    ] = None,
    which: Annotated[
        str,
        typer.Option(
            metavar="FACE",
            help="With --detect, which face of a photograph: one (more is an error), largest, central, a number from the left, "
            "or all (each face is a probe).",
        ),
    ] = "one",
    features: Annotated[
        bool, typer.Option("--features/--no-features", help="Keep the bottleneck features, which heads are trained on.")
    ] = True,
    batch_size: Annotated[int, typer.Option(help="Samples in one run of the model.", min=1)] = 8,
    threads: Annotated[
        int, typer.Option(help="Threads of the model; more than one rarely pays on a busy machine.", min=1)
    ] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Embed on the nodes of a Ray cluster, which find the inputs at the same paths: local, auto or HOST:PORT.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Embed images or recordings with an ONNX recogniser.

    The subject of a sample is the name of its folder. The file also holds a fingerprint of the model, so that embeddings of
    different models are not mixed. If you interrupt the command, run it again: it continues where it stopped.

    `arcface` reads faces aligned to 112×112 pixels: `holue embed arcface faces.zip --out faces.npz`. `campplus` reads
    recordings of speech: `holue embed campplus speech/ --out speech.npz`. Whole photographs need a face detector:
    `holue embed arcface photographs/ --detect yunet --out faces.npz`, long recordings a speech detector:
    `holue embed campplus recordings/ --detect silero --out speech.npz`
    """
    quiet = json or not sys.stderr.isatty()
    with nullcontext(None) if quiet else progress_bar("embedding") as progress:
        file = embed_to_file(
            model,
            inputs,
            out,
            detect=detect,
            which=which,
            features=features,
            batch_size=batch_size,
            threads=threads,
            progress=progress,
            cluster=cluster,
        )
    subjects = 0 if file.subject_id is None else len(np.unique(file.subject_id))
    summary = {
        "out": str(out),
        "samples": len(file.embeddings),
        "dimension": int(file.embeddings.shape[1]),
        "subjects": subjects,
        "features": file.features is not None,
        "fingerprint": file.fingerprint,
        "skipped": list(file.skipped),
    }
    if json:
        print_json(summary)
    else:
        say(f"{summary['samples']} samples of {subjects} subjects, d = {summary['dimension']}, written to {out}")
        if file.skipped:
            some = ", ".join(file.skipped[:MOST_NAMED]) + (", …" if len(file.skipped) > MOST_NAMED else "")
            say(f"Skipped, nothing was found in {len(file.skipped)}: {some}")
