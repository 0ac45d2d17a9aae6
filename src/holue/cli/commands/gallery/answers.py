"""``holue calibrate`` and ``holue identify``: from embeddings to answers."""

from __future__ import annotations

import csv
import dataclasses
import io
import json as jsons
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import holue
from holue.artifact import write_text
from holue.cli.commands.gallery.samples_file import By, Damaged, DamagedGallery, File, Gallery, SamplesFile
from holue.cli.output import Json, print_json, say
from holue.datasets.formats.parquet import write_parquet
from holue.errors import InvalidFileError, NotCalibratedError
from holue.live.batches import QUESTIONS_UNDER_WAY, Batches, digest_of_arrays
from holue.progress import progress_bar, working
from holue.recognition.answer.identifications import ACCEPTED, FILTERED, INCOMPLETE, REJECTED

DECISIONS = (ACCEPTED, REJECTED, FILTERED, INCOMPLETE)
SUFFIXES = (".csv", ".parquet", ".jsonl")


def calibrate(
    gallery: Gallery,
    probes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Probes with subject_id to calibrate on; subjects not enrolled are strangers."
        ),
    ] = None,
    fpir: Annotated[
        float | None, typer.Option(help="Share of strangers that may be accepted; default: the gallery's.")
    ] = None,
    fpir_confidence: Annotated[
        float | None,
        typer.Option(help="Keep --fpir with this confidence over people, such as 0.95; default: the gallery's."),
    ] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Set the threshold and learn how far answers can be trusted; kept in the gallery.

    Without --probes it learns from the enrolled samples, each left out in turn: some subjects need two samples or more.
    The printed FPIR has an interval over people: strangers are few, whatever the number of their samples.
    Example: `holue calibrate office --fpir 0.01 --fpir-confidence 0.95`
    """
    chosen = {"target_fpir": fpir, "fpir_confidence": fpir_confidence}
    settings: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    with holue.open(gallery, **settings) as opened:
        with working("calibrating", quiet=json):
            if probes is None:
                entry = opened.calibrate(by=by)
            else:
                given = SamplesFile.read(probes, subjects=True)
                subjects = np.asarray(given.subjects_for(opened))
                entry = opened.calibrate(given.embeddings, subjects, given.concentration, model=given.model, by=by)
        status = opened.status()
    if json:
        point = {
            "threshold": status.threshold,
            "achieved_fpir": status.achieved_fpir,
            "target_fpir": status.target_fpir,
            "expected_fpir": None if status.expected_fpir is None else dataclasses.asdict(status.expected_fpir),
            "shortfall": status.shortfall,
            "recognised": None if status.recognised is None else dataclasses.asdict(status.recognised),
        }
        print_json({**dataclasses.asdict(entry), **point})
        return
    achieved = "" if status.achieved_fpir is None else f", FPIR {status.achieved_fpir:.4f}"
    say(f"calibration {entry.number} from {entry.source}: threshold {status.threshold:.4f}{achieved}")
    if status.expected_fpir is not None:
        say(f"FPIR with {status.subjects} subjects: {status.expected_fpir}")
    if status.recognised is not None:
        say(f"at the threshold, {status.recognised}")


def identify(
    gallery: Gallery,
    file: File,
    out: Annotated[
        Path | None, typer.Option(metavar="ANSWERS", help="Write the answers: .csv, .parquet or .jsonl.")
    ] = None,
    top_k: Annotated[int, typer.Option(help="Candidates of each probe.", min=1)] = 5,
    version: Annotated[int | None, typer.Option(help="Answer as the gallery was in this version.", min=0)] = None,
    damaged: DamagedGallery = Damaged.refuse,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Ask the shards of a Ray cluster: local, auto or HOST:PORT.")
    ] = None,
    json: Json = False,
) -> None:
    """Identify every row of a file: who, or nobody enrolled, how far to trust it, and why.

    The gallery is only read, so that another process may change it meanwhile. Example:
    `holue identify office probes.npz --out answers.csv`. With --cluster and --out, finished answers are kept in ANSWERS.partial
    until all are there: if you interrupt the command, run it again, and it continues where it stopped.
    """
    if out is not None and out.suffix not in SUFFIXES:
        raise InvalidFileError(
            f"{out}: unknown kind of file {out.suffix!r}; answers are written to {', '.join(SUFFIXES)}"
        )
    given = SamplesFile.read(file, subjects=False)
    names = given.names or list(range(len(given.embeddings)))
    quiet = json or not sys.stderr.isatty()
    rows: list[dict[str, Any]] = []
    with holue.open(gallery, read_only=True, damaged=damaged.value, cluster=cluster) as opened:
        opened.check_model(given.model)
        asked = opened.current if version is None else opened.at(version)
        if asked.state is not None and asked.state.operating_point is None:
            raise NotCalibratedError(
                f"{gallery} is not calibrated in version {asked.version}; run: holue calibrate {gallery}"
            )
        missing = list(asked.missing.subjects)
        head = {"gallery_version": asked.version, "calibration": asked.calibration, "missing": missing}

        def answer(part: slice) -> list[dict[str, Any]]:
            kappa = None if given.concentration is None else given.concentration[part]
            answers = asked.identify(given.embeddings[part], kappa, top_k=top_k)
            return [{"sample": name, **answer.to_dict()} for name, answer in zip(names[part], answers)]

        kept = None
        if cluster is not None and out is not None:
            kept = Path(f"{out}.partial")
        probes = None if kept is None else digest_of_arrays(given.embeddings, given.concentration)
        about = {**head, "probes": probes, "top_k": top_k}
        batches = Batches(
            answer, len(names), under_way=1 if cluster is None else QUESTIONS_UNDER_WAY, kept=kept, about=about
        )
        with nullcontext(None) if quiet else progress_bar("identifying") as progress:
            for some in batches:
                rows += some
                if progress is not None:
                    progress(len(rows), len(names))
    if out is not None:
        _write(rows, out)
        batches.forget()
    if json:
        print_json({**head, "answers": rows} if out is None else {**head, "answers": len(rows), "out": str(out)})
        return
    for line in _lines(rows) if out is None else ():
        say(line)
    counts = {kind: sum(row["decision"] == kind for row in rows) for kind in DECISIONS}
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    say(f"{len(rows)} probes: {told} (gallery version {asked.version})")


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        who = row["subject"] if row["decision"] == ACCEPTED else {REJECTED: "nobody enrolled"}.get(row["decision"], "?")
        yield f"{row['sample']}: {who}  uncertainty {row['uncertainty']:.2f}  {row['reason']}"


def _write(rows: list[dict[str, Any]], path: Path) -> None:
    if path.suffix == ".jsonl":
        write_text(path, "".join(jsons.dumps(row, allow_nan=False) + "\n" for row in rows))
        return
    flat = [_flat(row) for row in rows]
    if path.suffix == ".csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(flat[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        write_text(path, text.getvalue())
        return
    columns = {name: [row[name] for row in flat] for name in flat[0]}
    write_parquet(path, {name: _column(values) for name, values in columns.items()})


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Candidates as columns ``candidate_1``, ``score_1``, ``probability_1`` and so on."""
    flat = {name: value for name, value in row.items() if name != "candidates"}
    for rank, candidate in enumerate(row["candidates"], start=1):
        flat |= {f"candidate_{rank}": candidate["subject"], f"score_{rank}": candidate["score"]}
        flat[f"probability_{rank}"] = candidate["probability"]
    return flat


def _column(values: list[Any]) -> Any:
    # Nobody is null, which only an array of objects can hold.
    return np.array(values, dtype=object) if any(value is None for value in values) else np.array(values)
