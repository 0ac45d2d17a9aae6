"""``holue enroll``, ``holue remove`` and ``holue erase``: who is in a gallery."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

import holue
from holue.cli.commands.gallery.samples_file import By, File, Gallery, SamplesFile, as_enrolled
from holue.cli.commands.gallery.service_ledger import ledger_of
from holue.cli.output import Json, counted, print_json, say
from holue.cli.spelling import spelled
from holue.errors import InvalidSubjectsError
from holue.progress import working

Subjects = Annotated[list[str], typer.Argument(metavar="SUBJECT", help="Ids of subjects.")]
NONE = "none holds them"
SHOWN = 10
"""Rows that were left out, in the printed list."""


def enroll(
    ctx: typer.Context,
    gallery: Gallery,
    file: File,
    add: Annotated[bool, typer.Option("--add", help="Give enrolled subjects more samples.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Give enrolled subjects new samples in place of all.")
    ] = False,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Enrol the good rows and list the others; without it a bad row stops all."),
    ] = False,
    consent: Annotated[str | None, typer.Option(help="What the subjects agreed to, kept with each.")] = None,
    purpose: Annotated[str | None, typer.Option(help="What they are enrolled for, kept with each.")] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Enrol the subjects of a file, all or nothing; what is acknowledged survives a crash.

    FILE holds `embeddings` and `subject_id`, and optionally `media_id` (samples of one photograph or recording), `concentration`
    and `sample_id`, as `holue embed` writes them. In a CSV file all columns of other names are the embedding. Example:
    `holue embed arcface faces.zip --out faces.npz`, then `holue enroll office faces.npz --consent "form 12"`
    """
    if add and replace:
        raise InvalidSubjectsError("add more samples or replace all of them, not both: give --add or --replace")
    given = SamplesFile.read(file, subjects=True, unchecked=skip_bad)
    fields: dict[str, Any] = {**given.fields, "by": by, "skip_bad": skip_bad}
    with holue.open(gallery) as opened:
        if add or replace:
            verb = opened.add_samples if add else opened.replace
        else:
            verb, fields = opened.enroll, {**fields, "consent": consent, "purpose": purpose}
        with working(f"enrolling {len(given.embeddings)} samples", quiet=json):
            done = verb(given.embeddings, given.subjects_for(opened), **fields)
        subjects, total = len(set(done.subjects.tolist())), len(opened)
    left_out = [dataclasses.asdict(bad) for bad in done.left_out]
    if json:
        samples = len(done.samples)
        print_json({"version": done.version, "subjects": subjects, "samples": samples, "left_out": left_out})
        return
    say(
        f"{counted(len(done.samples), 'sample')} of {counted(subjects, 'subject')}; the gallery holds "
        f"{counted(total, 'subject')} in version {done.version}"
    )
    for bad in left_out[:SHOWN]:
        say(f"left out: row {bad['row']} {spelled(bad['why'], ctx.command)}")
    if len(left_out) > SHOWN:
        say(f"and {len(left_out) - SHOWN} more rows were left out; --json lists all")


def remove(gallery: Gallery, subjects: Subjects, by: By = None, json: Json = False) -> None:
    """Remove subjects. `holue log` shows it; `gallery.undo()` in Python brings them back, until they are erased.

    Example: `holue remove office ann bob`
    """
    with holue.open(gallery) as opened:
        version = opened.remove(as_enrolled(opened, subjects), by=by)
        total = len(opened)
    if json:
        print_json({"version": version, "removed": len(subjects), "subjects": total})
        return
    say(f"{len(subjects)} removed; the gallery holds {total} subjects in version {version}")


def erase(
    gallery: Gallery,
    subjects: Annotated[list[str] | None, typer.Argument(metavar="SUBJECT", help="Ids of subjects.")] = None,
    expired: Annotated[bool, typer.Option("--expired", help="Everybody whose retain_until has come.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --expired: only list their numbers.")] = False,
    by: By = None,
    json: Json = False,
) -> None:
    """Erase subjects from every file of the gallery, its snapshots included; nothing brings them back.

    The receipt lists the files that were searched for the embeddings. The exit code is 1 where one still holds them, for instance
    because another subject was enrolled with the same bytes. Example: `holue erase office ann`
    """
    if bool(subjects) == expired:
        raise InvalidSubjectsError("name the subjects to erase, or give --expired; one of the two")
    with (
        holue.open(gallery) as opened,
        ledger_of(gallery) as ledger,
        working("erasing, and searching every file", quiet=json),
    ):
        numbers = opened.purge(dry_run=True, by=by)[0] if expired else []
        receipt = None
        if not expired or (numbers and not dry_run):
            whom = [] if expired else as_enrolled(opened, subjects or [])
            if ledger is None:
                receipt = opened.erase(whom, numbers=numbers, by=by)
            else:
                from holue.service.ledger.ledger import erase_everywhere

                receipt = erase_everywhere(opened, ledger, whom, numbers=numbers, by=by)
    result = None if receipt is None else {**dataclasses.asdict(receipt), "clean": receipt.clean}
    if json:
        print_json({"expired": numbers, "receipt": result} if expired else {"receipt": result})
    elif receipt is None:
        say(f"{len(numbers)} subjects have expired" + (f": numbers {', '.join(map(str, numbers))}" if numbers else ""))
    else:
        found = ", ".join(searched.file for searched in receipt.files if searched.found)
        told = (
            f"such bytes are still in {found}, as is usual where another subject has the same sample" if found else NONE
        )
        samples = "1 sample" if receipt.samples == 1 else f"{receipt.samples} samples"
        say(f"{samples} erased; {len(receipt.files)} files were searched, {told}")
    if receipt is not None and not receipt.clean:
        raise typer.Exit(1)
