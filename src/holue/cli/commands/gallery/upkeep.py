"""``holue create``, ``status``, ``verify``, ``compact``, ``snapshot``, ``restore`` and ``log``: a gallery over the years."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

import holue
from holue.cli.commands.gallery.samples_file import By, Gallery, SamplesFile
from holue.cli.output import Json, print_json, say
from holue.errors import InvalidFileError, InvalidParameterError
from holue.live.opening import restore as restore_gallery


def create(
    gallery: Gallery,
    dim: Annotated[int | None, typer.Option(help="Coordinates of an embedding.", min=1)] = None,
    model: Annotated[str | None, typer.Option(help="Fingerprint of the embedding model.")] = None,
    like: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take dimension and model from a file of embeddings.")
    ] = None,
    fpir: Annotated[float, typer.Option(help="Share of strangers that may be accepted.")] = 0.05,
    threshold: Annotated[float | None, typer.Option(help="A fixed cosine to accept at, in place of --fpir.")] = None,
    method: Annotated[
        str, typer.Option(help="How an answer's reliability is judged; see `holue scores`.")
    ] = "holue-plus",
    search: Annotated[str, typer.Option(help="How it is read: exact, float16, int8 or approximate.")] = "exact",
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
    settings: dict[str, Any] = {"target_fpir": fpir, "threshold": threshold, "method": method, "search": search}
    with holue.open(gallery, create=True, dim=dim, model=model, **settings) as opened:
        status = opened.status()
    if json:
        print_json(status.to_dict())
        return
    say(f"{gallery} is created for embeddings of {dim} numbers" + (f" from model {model}" if model else ""))
    say(f"Next: holue enroll {gallery} FILE, then holue calibrate {gallery}")


def status(gallery: Gallery, json: Json = False) -> None:
    """Who is enrolled in numbers, the calibration, and why it may no longer fit.

    Example: `holue status office`
    """
    with holue.open(gallery, read_only=True) as opened:
        now = opened.status()
    if json:
        print_json(now.to_dict())
        return
    kept = now.store
    say(f"{kept.subjects} subjects, {kept.samples} samples, {kept.dim} dimensions, {kept.bytes / 1e6:.1f} MB")
    say(f"version {now.version} (kept since {kept.oldest_version}); model {kept.model or 'not named'}")
    if now.calibration is None:
        say("not calibrated" + ("" if now.threshold is None else f"; threshold {now.threshold:.4f} as given"))
    else:
        point = "" if now.threshold is None else f", threshold {now.threshold:.4f}"
        say(f"calibration {now.calibration}, learned from version {now.calibrated_at}{point}")
    for doubt in now.doubts:
        say(f"doubt: {doubt}")
    if kept.snapshots:
        say(f"snapshots: {', '.join(kept.snapshots)}")


def verify(gallery: Gallery, json: Json = False) -> None:
    """Read every byte and compare checksums; damage is named with the subjects concerned. Exit code 1 if there is any.

    Example: `holue verify office`
    """
    with holue.open(gallery, read_only=True) as opened:
        problems = opened.verify()
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
        opened.compact(forget_before=forget_before, by=by)
        after = opened.status().store
    if json:
        print_json({"before": dataclasses.asdict(before), "after": dataclasses.asdict(after)})
        return
    say(f"{before.segments} segments became {after.segments}; {after.bytes / 1e6:.1f} MB")


def snapshot(
    gallery: Gallery,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Its name; default: the version.")] = None,
    by: By = None,
    json: Json = False,
) -> None:
    """Copy the gallery as it is now, calibrations included, into its `snapshots` folder, where erasure reaches it.

    Example: `holue snapshot office monday`
    """
    with holue.open(gallery) as opened:
        made, version = opened.snapshot(name, by=by), opened.version
    if json:
        print_json({"snapshot": str(made), "version": version})
        return
    say(f"version {version} is kept in {made}")


def restore(
    snapshot: Annotated[Path, typer.Argument(metavar="SNAPSHOT", help="The folder that `holue snapshot` made.")],
    gallery: Annotated[Path, typer.Argument(metavar="GALLERY", help="A new gallery to make of it.")],
    json: Json = False,
) -> None:
    """Make a new gallery from a snapshot; it gives the same answers. The snapshot stays as it is.

    Example: `holue restore office/snapshots/monday office-of-monday`
    """
    if not snapshot.is_dir():
        raise InvalidFileError(f"{snapshot}: no such folder; give one in the `snapshots` folder of a gallery")
    with restore_gallery(snapshot, gallery) as opened:
        version, total = opened.version, len(opened)
    if json:
        print_json({"gallery": str(gallery), "version": version, "subjects": total})
        return
    say(f"{gallery} holds {total} subjects in version {version}")


def log(
    gallery: Gallery,
    since: Annotated[int | None, typer.Option(help="Changes after this version; default: all that are kept.")] = None,
    json: Json = False,
) -> None:
    """What was changed, when and by whom: enrolments, removals, erasures, snapshots, calibrations.

    Example: `holue log office --since 40`
    """
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
    entries = [(c["time"], f"version {c['version']}: {c['kind']}, {c['subjects']} subjects", c["by"]) for c in changes]
    entries += [(o["time"], f"{o['verb']} {o['detail'].get('name', '')}".rstrip(), o["by"]) for o in operations]
    for time, what, who in sorted(entries, key=lambda entry: entry[0]):
        when = datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
        say(f"{when}  {what}" + (f"  by {who}" if who else ""))
