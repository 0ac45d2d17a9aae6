"""``holue apply``: a trained head → its output beside the embeddings of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from holue.cli.output import Json, print_json, say
from holue.embedding.heads.apply import apply_to_file, load_head


def apply(
    head: Annotated[
        Path,
        typer.Argument(metavar="HEAD", help="What `holue train` wrote: HEAD.json, with HEAD.onnx unless it is norm."),
    ],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Embeddings (.npz) of the head's own recogniser, with features unless it is norm."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The .npz file to write; another than FILE.")],
    json: Json = False,
) -> None:
    """Add the output of a trained head to a file of embeddings.

    `norm` and `scf` add the key `concentration`, `pfe` adds `variance` and `scaleface` adds `scale`; `holue evaluate` reads them
    for the methods that need them. `arcface` replaces the embeddings. All other keys are kept; an earlier output under the same
    key is replaced. Needs no torch.

    Example: `holue apply scf faces.npz --out faces-scf.npz`, then `holue split faces-scf.npz faces`
    """
    trained = load_head(head)
    output = apply_to_file(trained, file, out)
    low, middle, high = (float(value) for value in np.percentile(output, (5, 50, 95)))
    if json:
        print_json(
            {
                "out": str(out),
                "kind": trained.kind,
                "output": trained.output,
                "shape": list(output.shape),
                "percentiles": {"5": low, "50": middle, "95": high},
            }
        )
        return
    told = "" if trained.kind == "arcface" else f", median {middle:.3g} (5 % to 95 %: {low:.3g} to {high:.3g})"
    say(f"{trained.output} of {len(output)} samples{told}, written to {out}")
