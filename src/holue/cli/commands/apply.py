"""``holue apply``: a trained head → its output beside the embeddings of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from holue.cli.output import Json, print_json, say
from holue.embedding.heads.apply import apply_to_file
from holue.embedding.heads.onnx_head import OnnxHead


def apply(
    head: Annotated[
        Path, typer.Argument(metavar="HEAD", help="A head that `holue train` wrote: HEAD.onnx and HEAD.json.")
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Embeddings with features (.npz), of the head's own recogniser.")
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write; another than FILE.")],
    json: Json = False,
) -> None:
    """Add what a trained head says of each sample to a file of embeddings.

    An `scf` head adds the key `concentration`, `pfe` adds `variance` and `scaleface` adds `scale`, which `holue evaluate` reads
    for the methods that need them; `arcface` puts its embeddings in the place of the recogniser's. Everything else in the file is
    kept, and an earlier output of the same kind replaced. Needs no torch.

    Example: `holue apply scf faces.npz --out faces-scf.npz`, then `holue split faces-scf.npz faces`
    """
    trained = OnnxHead.load(head)
    output = apply_to_file(trained, file, out)
    low, middle, high = (float(value) for value in np.percentile(output, (5, 50, 95)))
    if json:
        print_json(
            {
                "out": str(out),
                "kind": trained.kind,
                "output": trained.record["output"],
                "shape": list(output.shape),
                "percentiles": {"5": low, "50": middle, "95": high},
            }
        )
        return
    told = "" if trained.kind == "arcface" else f", median {middle:.3g} (5 % to 95 %: {low:.3g} to {high:.3g})"
    say(f"{trained.record['output']} of {len(output)} samples{told}, written to {out}")
