"""IJB layout: the 1:N protocol files of IJB-B and IJB-C, and embeddings in the order of their image list.

Files of ``{name}`` (``ijbb``, ``ijbc``), in the folder itself or in its ``meta/``:

    {name}_face_tid_mid.txt        one line per image: image_name template_id media_id
    {name}_1N_gallery_G1.csv       columns TEMPLATE_ID, SUBJECT_ID and others; one row per image
    {name}_1N_gallery_G2.csv       (IJB-B is also distributed with S1 and S2 for G1 and G2)
    {name}_1N_probe_mixed.csv      the same columns; one row per image

Embeddings are an ``.npz``: row i of ``embs`` (n, d) belongs to line i of the image list; ``unc`` is log κ
(n, 1) or log σ² (n, d). Frames of one video share a ``media_id`` and are averaged before media are summed.

The galleries G1 and G2 enrol different subjects, and the official open-set protocol searches every probe in
each of them separately: a probe mated with G1 is non-mated with G2. ``gallery="both"`` enrols all subjects
together (3531 in IJB-C); every probe of the official list is then mated, so that part measures closed-set
identification only and is refused by :class:`~holue.evaluation.protocol.IdentificationProtocol`.

IJB has no development part of its own; the paper takes MS1MV2's (:mod:`holue.datasets.protocols.ms1m`):

    development = load_ms1m("ms1mv2", "ms1mv2_embs.npz")
    evaluation = load_ijb("ijbc", "ijbc_embs.npz", name="ijbc", gallery="G1")
    protocol = IdentificationProtocol("ijbc", development, evaluation)

Lists with one row per template exist too. They look alike and would pool one image in place of all: the
number of rows of each template is therefore compared with the image list.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from holue.datasets.formats.lists import PartLists, TemplateList
from holue.datasets.formats.npz import npz_keys, read_npz
from holue.datasets.formats.samples import Samples, read_samples
from holue.datasets.formats.table import as_ids, read_csv, read_fields
from holue.errors import InvalidFileError, InvalidParameterError
from holue.evaluation.protocol import ProtocolPart, listed
from holue.gallery.subjects import Subjects

Array = npt.NDArray[Any]

GALLERIES = {"G1": ("G1",), "G2": ("G2",), "both": ("G1", "G2")}


def load_ijb(
    folder: str | Path,
    embeddings: str | Path,
    *,
    name: str = "ijbc",
    gallery: Literal["G1", "G2", "both"] = "G1",
    weighting: str = "uniform",
) -> ProtocolPart:
    """Protocol files and embeddings → one part; join it with a development part, such as MS1MV2's."""
    lists = read_ijb(folder, name=name, gallery=gallery)
    return lists.with_samples(read_embs(embeddings), weighting=weighting)


def read_ijb(folder: str | Path, *, name: str = "ijbc", gallery: Literal["G1", "G2", "both"] = "G1") -> PartLists:
    """The template lists of a gallery and of the mixed probes."""
    if gallery not in GALLERIES:
        raise InvalidParameterError(f"gallery must be one of {', '.join(GALLERIES)}; got {gallery!r}")
    # Each gallery file under its usual name, or under the one it has in IJB-B's first distribution.
    enrolled = [
        find_file(folder, f"{name}_1N_gallery_{which}.csv", f"{name}_1N_gallery_S{which[1]}.csv")
        for which in GALLERIES[gallery]
    ]
    probes = find_file(folder, f"{name}_1N_probe_mixed.csv")
    image_list = find_file(folder, f"{name}_face_tid_mid.txt")
    return join_lists(enrolled, probes, image_list, source=name)


def read_template_csv(path: str | Path) -> TemplateList:
    """A gallery or probe CSV on its own: which templates, whose, of how many images; not of which images."""
    columns = read_csv(path, columns=("TEMPLATE_ID", "SUBJECT_ID"))
    templates, subjects = as_ids(columns["TEMPLATE_ID"]), as_ids(columns["SUBJECT_ID"])
    return TemplateList(templates, subjects, origin=str(path))


def read_embs(path: str | Path) -> Samples:
    """Embeddings as ``embs`` and ``unc`` (see above), or in the format of :mod:`holue.datasets.formats.samples`."""
    path = Path(path)
    if path.suffix != ".npz" or "embs" not in npz_keys(path):
        try:
            return read_samples(path, required=("embeddings",))
        except InvalidFileError as error:
            raise InvalidFileError(f"{error} (expected 'embs' and 'unc', or 'embeddings')") from error
    arrays = read_npz(path, required=("embs",), optional=("unc",))
    columns = {"embeddings": arrays["embs"]}
    if "unc" in arrays:
        columns |= _uncertainty(arrays["unc"], columns["embeddings"].shape, path)
    return Samples.from_arrays(columns, origin=str(path))


def join_lists(galleries: list[Path], probes: Path, image_list: Path | None, *, source: str) -> PartLists:
    """Gallery and probe CSVs with the image list; without it the lists can be counted, not pooled."""
    enrolled = _concatenated([read_template_csv(path) for path in galleries])
    searched = read_template_csv(probes)
    shared = np.intersect1d(enrolled.template_id, searched.template_id)
    if len(shared):
        raise InvalidFileError(
            f"{searched.origin}: templates {listed(shared)} are in {enrolled.origin} too; "
            "the same images would be enrolled and searched"
        )
    if image_list is None:
        return PartLists(enrolled, searched, source)
    templates, media = read_image_list(image_list)
    return PartLists(
        _images_of(enrolled, templates, media, image_list),
        _images_of(searched, templates, media, image_list),
        source,
        len(templates),
    )


def read_image_list(path: str | Path) -> tuple[Subjects, Subjects]:
    """Template and medium of every image; a fourth field (the subject) is allowed and not used."""
    columns = read_fields(path, fields=("image_name", "template_id", "media_id"), optional=1)
    return as_ids(columns["template_id"]), as_ids(columns["media_id"])


def find_file(folder: str | Path, *names: str) -> Path:
    """The first of these names in the folder or in its ``meta/``."""
    places = [Path(folder), Path(folder) / "meta"]
    for name in names:
        for place in places:
            if (place / name).is_file():
                return place / name
    raise InvalidFileError(f"{Path(folder) / names[0]}: no such file, nor in meta/")


def _images_of(table: TemplateList, templates: Subjects, media: Subjects, image_list: Path) -> TemplateList:
    _check_one_row_per_image(table, templates, image_list)
    ids, subjects = table.templates
    rows = np.flatnonzero(np.isin(templates, ids))
    subject = subjects[np.searchsorted(ids, templates[rows])]
    return TemplateList(templates[rows], subject, rows, media[rows], table.origin)


def _check_one_row_per_image(table: TemplateList, templates: Subjects, image_list: Path) -> None:
    if table.template_id.dtype.kind != templates.dtype.kind:
        raise InvalidFileError(
            f"{table.origin}: column 'TEMPLATE_ID' and the template ids of {image_list} are of different "
            f"types: {table.template_id[0].item()!r} and {templates[0].item()!r}"
        )
    ids, rows = np.unique(table.template_id, return_counts=True)
    listed_ids, images = np.unique(templates, return_counts=True)
    at = np.searchsorted(listed_ids, ids).clip(max=len(listed_ids) - 1)
    absent = listed_ids[at] != ids
    if absent.any():
        raise InvalidFileError(
            f"{table.origin}: {int(absent.sum())} templates have no image in {image_list}: {listed(ids[absent])}"
        )
    differs = rows != images[at]
    if differs.any():
        first = int(differs.argmax())
        kind = "the file has one row per template" if (rows == 1).all() else "rows and images do not agree"
        raise InvalidFileError(
            f"{table.origin}: {kind}, but one row per image is expected: template {ids[first].item()!r} has "
            f"{rows[first]} rows here and {images[at][first]} images in {image_list} "
            f"({int(differs.sum())} of {len(ids)} templates differ); use the list with one row per image"
        )


def _concatenated(tables: list[TemplateList]) -> TemplateList:
    if len(tables) == 1:
        return tables[0]
    first, second = tables
    shared = np.intersect1d(first.subject_id, second.subject_id)
    if len(shared):
        raise InvalidFileError(
            f"{first.origin} and {second.origin}: both enrol subjects {listed(shared)}; the galleries must differ"
        )
    return TemplateList(
        np.concatenate([first.template_id, second.template_id]),
        np.concatenate([first.subject_id, second.subject_id]),
        origin=f"{first.origin} and {second.origin}",
    )


def _uncertainty(unc: Array, shape: tuple[int, ...], path: Path) -> dict[str, Array]:
    column = unc[:, None] if unc.ndim == 1 else unc
    if column.ndim != 2 or column.dtype.kind != "f" or column.shape[1] not in (1, *shape[1:]):
        raise InvalidFileError(
            f"{path}: key 'unc' must be log κ (n, 1) or log σ² (n, d) for 'embs' of shape {shape}, "
            f"got {unc.shape} of dtype {unc.dtype}"
        )
    wide = column.astype(np.float64) if column.shape[1] == 1 else column
    outside = ~(np.abs(wide) < 80).all(axis=1)
    if outside.any():
        row = int(outside.argmax())
        raise InvalidFileError(
            f"{path}: key 'unc' must hold logarithms between −80 and 80, row {row} does not; "
            "was it exponentiated already?"
        )
    return {"concentration" if column.shape[1] == 1 else "variance": np.exp(wide)}
