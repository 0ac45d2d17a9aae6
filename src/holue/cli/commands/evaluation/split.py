"""``holue split``: one flat file of embeddings → a folder to evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holue.cli.output import Json, print_json, say
from holue.datasets.split import split_file


def split(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Embeddings with subject_id, .npz or .parquet.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; it must not exist.")],
    seed: Annotated[int, typer.Option(help="Seed of the split; the same seed gives the same files.", min=0)] = 0,
    development_share: Annotated[float, typer.Option(help="Share of the subjects in dev/.")] = 0.5,
    known_share: Annotated[
        float, typer.Option(help="Share of the subjects with several samples that are enrolled.")
    ] = 0.5,
    enrolled: Annotated[int, typer.Option(help="Samples of a known subject in the gallery.")] = 1,
    json: Json = False,
) -> None:
    """Split one file of embeddings by subject into `dev/` and `eval/`, ready for `holue evaluate`.

    No subject is in both parts. In each part, some of the subjects with several samples are enrolled; their other samples are
    probes of enrolled subjects. All samples of the other subjects are probes of strangers. Samples with the same `template_id`
    or `media_id` stay together.
    Example: `holue split lfw.npz lfw --seed 1`
    """
    made = split_file(
        file,
        out,
        seed=seed,
        development_share=development_share,
        known_share=known_share,
        enrolled=enrolled,
    )
    protocol = made.protocol(out.name)
    parts = {role: part.counts for role, part in protocol.parts.items()}
    if json:
        print_json({"folder": str(out), "seed": seed, **parts})
        return
    for role, counts in parts.items():
        say(
            f"{role}: {counts['gallery_subjects']} subjects enrolled, {counts['mated_probes']} mated and "
            f"{counts['non_mated_probes']} non-mated probes, {counts['dim']} dimensions"
        )
    say(f"Next: holue evaluate {out} --report report")
