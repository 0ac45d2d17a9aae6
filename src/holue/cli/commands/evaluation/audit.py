"""``holue audit``: errors in a gallery."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from holue.artifact import write_text
from holue.cli.output import Json, console, print_json, say
from holue.datasets.formats.samples import read_samples
from holue.errors import InvalidFileError
from holue.evaluation.report.audit_page import SECTIONS, Picture, Section, audit_page
from holue.recognition.audit.audit import GalleryAudit, audit_gallery

STYLES = {"fine": "bold green", "weak": "bold yellow", "does not tell apart": "bold red", "unknown": "bold yellow"}
RAMP = " .:-=+*#%@"
"""Rising shares as letters that every terminal has."""
PAGES = (".html", ".htm")
WIDEST = 10_000
"""Columns within which the natural width of a table is measured."""


def audit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Samples of the gallery: .npz or .parquet.")],
    fpir: Annotated[float, typer.Option(help="FPIR that sets the threshold, with left-out samples as probes.")] = 0.01,
    threshold: Annotated[float | None, typer.Option(help="The threshold of your system, instead of --fpir.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="PAGE", help="Also write the findings as one HTML page.")] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder or .zip with the images, named by sample_id, for the page.")
    ] = None,
    show: Annotated[int, typer.Option(help="How many findings of each kind to print.", min=1)] = 10,
    json: Json = False,
) -> None:
    """Find what is wrong with a gallery: mislabelled samples, people enrolled twice, look-alikes, poor references, hubs.

    The first line says whether the embedding model can tell your subjects apart. If it cannot, do not use the findings.
    FILE holds `embeddings` and `subject_id`, and optionally `concentration` or `quality` (for poor references), `media_id` and
    `sample_id` (the names of the samples). Every sample is compared with the template of its own subject, pooled without this
    sample, and with all other subjects. Each finding has its cost in FNIR or FPIR.
    Example: `holue audit gallery.npz --html audit.html`
    """
    samples = read_samples(file)
    picture = None if images is None else _pictures(images)
    if html is not None and html.suffix.lower() not in PAGES:
        raise InvalidFileError(f"{html}: the name of a page ends in .html; choose another for --html")
    if html is not None and not html.resolve().parent.is_dir():
        raise InvalidFileError(f"{html.resolve().parent}: no such folder to write {html.name} in")
    found = audit_gallery(
        samples.embeddings,
        samples.subjects,
        concentration=samples.concentration,
        quality=samples.quality if samples.concentration is None else None,
        media=samples.media_id,
        sample_id=samples.sample_id,
        target_fpir=fpir,
        threshold=threshold,
    )
    if html is not None:
        write_text(html, audit_page(found, name=file.stem, picture=picture))
    if json:
        print_json(found.to_dict())
        return
    _print(found, show)
    if html is not None:
        say(f"Page: {html}")


def text_histogram(shares: Sequence[float]) -> str:
    """One letter per bin, relative to the largest.

    >>> text_histogram([0.0, 0.1, 0.9, 0.0])
    ' .@ '
    """
    largest = max(shares, default=0.0) or 1.0
    return "".join(RAMP[math.ceil((len(RAMP) - 1) * share / largest)] for share in shares)


def _print(found: GalleryAudit, show: int) -> None:
    first = found.discrimination
    sentence = first.sentence[0].upper() + first.sentence[1:]
    console.print(f"[{STYLES[first.grade]}]{escape(sentence)}[/]", highlight=False)
    if first.consequence:
        say(f"{first.consequence[0].upper()}{first.consequence[1:]}.")
    for name, shares in (("own subject", first.own), ("best other", first.best_other)):
        console.print(f"  {name:<11} |{escape(text_histogram(shares))}|", highlight=False)
    console.print(f"  score       {first.edges[0]:<+21.2f}{first.edges[-1]:>+21.2f}\n", highlight=False)
    fnir = "" if found.fnir is None else f" and FNIR {found.fnir:.4f}"
    console.print(
        f"[bold]{found.n_subjects} subjects[/], {found.n_samples} samples; at threshold {found.point.threshold:.3f} "
        f"left-out samples give FPIR {found.fpir:.4f}{fnir}, faults included."
    )
    for section in SECTIONS:
        findings = getattr(found, section.kind)
        if not findings:
            say(f"{section.title}: none found", "dim")
            continue
        more = f" (first {show} of {len(findings)})" if len(findings) > show else f" ({len(findings)})"
        say(f"{section.title}{more}", "bold")
        say(section.meaning, "italic")
        _print_findings(section, findings[:show])
    for note in found.notes:
        say(f"{note}.", "dim")


def _print_findings(section: Section, findings: Sequence[object]) -> None:
    """A table where it fits; else names one below the other and the numbers in a line, so that no name is cut."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in section.columns:
        table.add_column(column.head, no_wrap=True)
    for finding in findings:
        table.add_row(*(escape(column.text(finding)) for column in section.columns))
    if console.measure(table, options=console.options.update(width=WIDEST)).maximum <= console.width:
        console.print(table)
        say("")
        return
    names = [column for column in section.columns if column.is_name]
    width = max(len(column.head) for column in names)
    for finding in findings:
        for column in names:
            say(f"{column.head:<{width}}  {column.text(finding)}")
        say("; ".join(f"{column.head} {column.text(finding)}" for column in section.columns if not column.is_name))
        say("")


def _pictures(path: Path) -> Picture:
    if path.is_dir():
        root = path.resolve()

        def from_folder(name: str) -> bytes | None:
            image = (root / name).resolve()
            return image.read_bytes() if image.is_relative_to(root) and image.is_file() else None

        return from_folder
    if not zipfile.is_zipfile(path):
        raise InvalidFileError(f"{path}: no folder and no .zip archive of images")
    archive = zipfile.ZipFile(path)
    names = set(archive.namelist())
    return lambda name: archive.read(name) if name in names else None
