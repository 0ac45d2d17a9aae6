"""``holue create``, ``status``, ``verify``, ``compact``, ``snapshot``, ``restore`` and ``log``: a gallery over the years."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

import holue
from holue.cli.command import LazyCommand
from holue.cli.commands.gallery.samples_file import By, Damaged, DamagedGallery, Gallery, SamplesFile
from holue.cli.commands.gallery.service_ledger import ledger_of, start_keeping_images, verify_log
from holue.cli.output import Json, print_json, say
from holue.cli.spelling import spelled
from holue.errors import InvalidFileError, InvalidParameterError
from holue.live.calibration.calibrations import LIST
from holue.live.opening import restore as restore_gallery
from holue.progress import working
from holue.store.reference import CHANGE

SHOWN = 10
"""Subjects that are missing, in the printed list."""
LARGEST_DIM = 2**20
"""No embedding model has as many coordinates; a larger number is a slip of the hand."""


def create(
    gallery: Gallery,
    dim: Annotated[int | None, typer.Option(help="Coordinates of an embedding.", min=1, max=LARGEST_DIM)] = None,
    model: Annotated[str | None, typer.Option(help="Fingerprint of the embedding model.")] = None,
    like: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take dimension and model from a file of embeddings.")
    ] = None,
    fpir: Annotated[float, typer.Option(help="Share of strangers that may be accepted.")] = 0.05,
    fpir_confidence: Annotated[
        float | None, typer.Option(help="Keep --fpir with this confidence over people, such as 0.95.")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="A fixed cosine to accept at, in place of --fpir.")] = None,
    method: Annotated[
        str, typer.Option(help="How an answer's reliability is judged; see `holue scores`.")
    ] = "holue-plus",
    search: Annotated[
        str, typer.Option(help="How it is read: auto, exact, float16, int8, binary or approximate.")
    ] = "exact",
    keep_images: Annotated[
        bool, typer.Option("--keep-images", help="A service keeps small pictures of samples, for people who decide.")
    ] = False,
    json: Json = False,
) -> None:
    """Create an empty gallery. Dimension and model hold for its whole life; embeddings of another model are refused.

    Example: `holue create office --like faces.npz --fpir 0.01`
    """
    if Path(gallery).exists():
        raise InvalidParameterError(f"{gallery} exists already; choose another place for a new gallery")
    if like is not None:
        given = SamplesFile.read(like, subjects=False)
        dim, model = given.embeddings.shape[1], model or given.model
    if dim is None:
        raise InvalidParameterError("the dimension is not known: give --dim, or --like with a file of embeddings")
    settings: dict[str, Any] = {
        "target_fpir": fpir,
        "fpir_confidence": fpir_confidence,
        "threshold": threshold,
        "method": method,
        "search": search,
    }
    with holue.open(gallery, create=True, dim=dim, model=model, **settings) as opened:
        status = opened.status()
    if keep_images:
        start_keeping_images(gallery)
    if json:
        print_json(status.to_dict())
        return
    say(f"{gallery} is created for embeddings of {dim} numbers" + (f" from model {model}" if model else ""))
    say(f"Next: holue enroll {gallery} FILE, then holue calibrate {gallery}")


def status(gallery: Gallery, damaged: DamagedGallery = Damaged.refuse, json: Json = False) -> None:
    """Who is enrolled in numbers, the calibration, and why it may no longer fit.

    Example: `holue status office`
    """
    with holue.open(gallery, read_only=True, damaged=damaged.value) as opened:
        now = opened.status()
    if json:
        print_json(now.to_dict())
        return
    kept = now.store
    say(f"{kept.subjects} subjects, {kept.samples} samples, {kept.dim} dimensions, {kept.bytes / 1e6:.1f} MB")
    since = "" if kept.oldest_version == now.version else f"; earlier ones are kept from {kept.oldest_version} on"
    say(f"version {now.version}{since}")
    say(f"model {kept.model or 'not named'}")
    if now.calibration is None:
        say("not calibrated" + ("" if now.threshold is None else f"; threshold {now.threshold:.4f} as given"))
    else:
        point = "" if now.threshold is None else f", threshold {now.threshold:.4f}"
        say(f"calibration {now.calibration}, learned from version {now.calibrated_at}{point}")
        if now.expected_fpir is not None:
            say(f"FPIR with {now.subjects} subjects: {now.expected_fpir} (target {now.target_fpir:g})")
        if now.recognised is not None:
            say(f"at the threshold, {now.recognised}")
        if now.shortfall is not None:
            say(spelled(now.shortfall, LazyCommand("gallery.answers").command("calibrate")))
    if now.search is not None:
        say(f"search: {now.search}")
    for doubt in now.doubts:
        say(f"doubt: {doubt}")
    for problem in now.damage:
        say(f"damage: {problem.file} {problem.what}")
    if now.missing:
        some = ", ".join(map(str, now.missing[:SHOWN])) + (" …" if len(now.missing) > SHOWN else "")
        say(f"missing: {len(now.missing)} subjects, wholly or in part: numbers {some}")
    if kept.snapshots:
        say(f"snapshots: {', '.join(kept.snapshots)}")


def verify(gallery: Gallery, json: Json = False) -> None:
    """Read every byte and compare checksums; damage is named with the subjects concerned. Exit code 1 if there is any.

    Example: `holue verify office`
    """
    with holue.open(gallery, read_only=True) as opened, working("reading every byte", quiet=json):
        problems = opened.verify()
    with ledger_of(gallery) as ledger:
        problems += [] if ledger is None else ledger.problems()
    if json:
        print_json({"problems": [dataclasses.asdict(problem) for problem in problems]})
    else:
        for problem in problems:
            whom = f" (subject numbers {', '.join(map(str, problem.subjects))})" if problem.subjects else ""
            say(f"{problem.file}: {problem.what}{whom}")
        say(f"{len(problems)} problems found" if problems else "no damage found")
    if problems:
        raise typer.Exit(1)


def compact(
    gallery: Gallery,
    forget_before: Annotated[int | None, typer.Option(help="Give up versions before this one.", min=0)] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Merge small files, and keep the templates so that the next opening is fast.

    Example: `holue compact office`
    """
    with holue.open(gallery) as opened:
        before = opened.status().store
        with working("compacting", quiet=json):
            opened.compact(forget_before=forget_before, by=by)
        after = opened.status().store
    if json:
        print_json({"before": dataclasses.asdict(before), "after": dataclasses.asdict(after)})
        return
    say(f"{before.segments} segments became {after.segments}; {after.bytes / 1e6:.1f} MB")


def snapshot(
    gallery: Gallery,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its name; default: the version.")] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Copy the gallery as it is now, calibrations included, into its `snapshots` folder, where erasure reaches it.

    Example: `holue snapshot office monday`
    """
    with holue.open(gallery) as opened:
        with working("copying", quiet=json):
            made = opened.snapshot(name, by=by)
        version = opened.version
    if json:
        print_json({"snapshot": str(made), "version": version})
        return
    say(f"version {version} is kept in {made}")


def restore(
    snapshot: Annotated[
        str, typer.Argument(metavar="SNAPSHOT", help="What `holue snapshot` made, or a gallery: a folder or a URL.")
    ],
    gallery: Annotated[str, typer.Argument(metavar="GALLERY", help="A new gallery to make of it: a folder or a URL.")],
    json: Json = False,
) -> None:
    """Make a new gallery from a snapshot, or from a gallery in another home. It gives the same answers; the source stays.

    Example: `holue restore office/snapshots/monday office-of-monday`
    """
    if "://" not in snapshot and not Path(snapshot).is_dir():
        raise InvalidFileError(f"{snapshot}: no such folder; give one in the `snapshots` folder of a gallery")
    with working("copying", quiet=json), restore_gallery(snapshot, gallery) as opened:
        version, total = opened.version, len(opened)
    if json:
        print_json({"gallery": str(gallery), "version": version, "subjects": total})
        return
    say(f"{gallery} holds {total} subjects in version {version}")


def log(
    gallery: Gallery,
    since: Annotated[int | None, typer.Option(help="Changes after this version; default: all that are kept.")] = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Verify the service's audit log instead; exit code 1 if a row is not as written."
        ),
    ] = False,
    head: Annotated[
        str | None,
        typer.Option(metavar="SEQUENCE:HASH", help="With --verify: a head noted earlier, which must be in it."),
    ] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --verify: write the audit log as JSON lines.")
    ] = None,
    json: Json = False,
) -> None:
    """What was changed, when and by whom: enrolments, removals, erasures, snapshots, calibrations.

    With --verify: whether the service's audit log is as it was written. Note the head that it prints in another place: whoever
    can write to the database could write the whole log anew, and only a head from before would tell.
    Example: `holue log office --since 40`, `holue log office --verify`
    """
    if verify:
        verify_log(gallery, head, export, json=json)
        return
    if head is not None or export is not None:
        raise InvalidParameterError("--head and --export belong to the audit log: give --verify with them")
    with holue.open(gallery, read_only=True) as opened:
        oldest = opened.status().store.oldest_version
        changes: list[dict[str, Any]] = [
            {
                "version": change.version, "kind": change.kind, "time": change.time, "by": change.by,
                "subjects": len({*change.subjects.tolist(), *change.moved_to.tolist()} - {-1}), "undoes": change.undoes,
            }
            for change in opened.changes(oldest if since is None else since)
        ]  # fmt: skip
        operations = [dataclasses.asdict(operation) for operation in opened.store.operations()]
    if json:
        print_json({"changes": changes, "operations": operations})
        return
    entries = [
        (c["time"], f"version {c['version']}: {c['kind']}, {_subjects(c['subjects'])}", c["by"]) for c in changes
    ]
    entries += [
        (o["time"], _told(o), o["by"]) for o in operations if o["detail"].get("name") != LIST and o["verb"] != CHANGE
    ]  # the changes themselves are listed already
    for time, what, who in sorted(entries, key=lambda entry: entry[0]):
        when = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
        say(f"{when}  {what}" + (f"  by {who}" if who else ""))


def _subjects(count: int) -> str:
    return "1 subject" if count == 1 else f"{count} subjects"


def _told(operation: dict[str, Any]) -> str:
    """An entry of the operations log, in words."""
    detail = operation["detail"]
    name = detail.get("name", "")
    words: dict[str, str] = {
        "put_artifact": f"{name.replace('-', ' ')} kept",
        "snapshot": f"snapshot {name} made",
        "compact": "files merged",
        "erase": f"erasure finished, receipt {detail.get('receipt')}",
    }
    return words.get(operation["verb"], str(operation["verb"]))
