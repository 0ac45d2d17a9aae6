"""Protocol file: both parts' template lists in one CSV, with a line of JSON above the header.

    # {"format": "holue-protocol", "version": 1, "name": "whale", "settings": {"seed": 1}, ...}
    part,role,template_id,subject_id,sample,media_id
    development,gallery,0,cadddb1636b9,00021adfb725ed.jpg,
    development,probe,2015,cadddb1636b9,0a4f5e7b2d11c3.jpg,

``part`` is ``development`` or ``evaluation``, ``role`` is ``gallery`` or ``probe``, one row per sample.
``sample`` is a name or, where the first line says so, a row number in the file of embeddings. Columns that a
protocol does not have are empty. ``pandas.read_csv(path, skiprows=1)`` reads it too.
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from holue.artifact import write_text
from holue.datasets.formats.lists import PartLists, ProtocolLists, TemplateList
from holue.datasets.formats.table import Strings, read_csv
from holue.errors import InvalidFileError
from holue.gallery.subjects import Subjects

FORMAT = "holue-protocol"
VERSION = 1

_IDS = ("template_id", "subject_id", "sample", "media_id")
_COLUMNS = ("part", "role", *_IDS)
_TYPES = {"i": "integer", "U": "string"}


def save_lists(lists: ProtocolLists, path: str | Path) -> None:
    """Write the lists; an existing file is never replaced, and a file is never left half written."""
    path = Path(path)
    if os.path.lexists(path):
        raise InvalidFileError(f"{path}: exists already; remove it or choose another name")
    tables = _tables(lists)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": lists.name,
        "settings": dict(lists.settings),
        "sources": {"development": lists.development.source, "evaluation": lists.evaluation.source},
        "n_samples": {"development": lists.development.n_samples, "evaluation": lists.evaluation.n_samples},
        "types": {
            f"{part} {role}": {name: _type_of(getattr(table, name)) for name in _IDS}
            for (part, role), table in tables.items()
        },
    }
    text = io.StringIO()
    text.write(f"# {json.dumps(header)}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for (part, role), table in tables.items():
        columns = [_strings(getattr(table, name), len(table)) for name in _IDS]
        writer.writerows((part, role, *row) for row in zip(*columns, strict=True))
    write_text(path, text.getvalue())


def load_lists(path: str | Path) -> ProtocolLists:
    """Read what :func:`save_lists` wrote: ids, types, order and settings come back as they were."""
    header = _read_header(Path(path))
    columns = read_csv(path, columns=_COLUMNS, skip_lines=1)
    parts = {}
    for part in ("development", "evaluation"):
        tables = {}
        for role in ("gallery", "probe"):
            rows = (columns["part"] == part) & (columns["role"] == role)
            if not rows.any():
                raise InvalidFileError(f"{path}: no rows with part {part!r} and role {role!r}")
            types = header["types"][f"{part} {role}"]
            ids = {name: _typed(columns[name][rows], types[name], name, path) for name in _IDS}
            if ids["template_id"] is None or ids["subject_id"] is None:
                raise InvalidFileError(f"{path}: columns 'template_id' and 'subject_id' must be filled")
            tables[role] = TemplateList(**ids, origin=str(path))  # type: ignore[arg-type]
        parts[part] = PartLists(tables["gallery"], tables["probe"], header["sources"][part], header["n_samples"][part])
    return ProtocolLists(header["name"], parts["development"], parts["evaluation"], header["settings"])


def _tables(lists: ProtocolLists) -> dict[tuple[str, str], TemplateList]:
    return {
        (name, role): table
        for name, part in (("development", lists.development), ("evaluation", lists.evaluation))
        for role, table in (("gallery", part.gallery), ("probe", part.probes))
    }


def _read_header(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file")
    with open(path, encoding="utf-8", errors="replace") as file:
        line = file.readline()
    try:
        header = json.loads(line.removeprefix("#"))
        kind, version = header["format"], header["version"]
        if kind == FORMAT and version == VERSION:
            _ = header["name"], header["settings"], header["sources"], header["n_samples"], header["types"]
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidFileError(
            f'{path}: not a protocol file: its first line must be \'# {{"format": "{FORMAT}", ...}}\', '
            f"found {line[:60].strip()!r}"
        ) from error
    if kind != FORMAT or version != VERSION:
        raise InvalidFileError(
            f"{path}: format {kind!r} version {version!r}; this release reads {FORMAT!r} version {VERSION}"
        )
    return header  # type: ignore[no-any-return]


def _type_of(column: Subjects | None) -> str | None:
    return None if column is None else _TYPES[column.dtype.kind]


def _strings(column: Subjects | None, n: int) -> list[str]:
    return [""] * n if column is None else column.astype(np.str_).tolist()


def _typed(column: Strings, kind: str | None, name: str, path: str | Path) -> Subjects | None:
    if kind is None:
        return None
    # The narrowest string type of these rows alone: a slice of the file's column keeps the widest of all.
    if kind == "string":
        return np.array(column.tolist())
    try:
        return column.astype(np.int64)
    except ValueError as error:
        raise InvalidFileError(f"{path}: column {name!r} must hold integers ({error})") from error
