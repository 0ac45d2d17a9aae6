"""Folder protocol: any embeddings, as ``dev/`` and ``eval/`` with a gallery and probes each.

    DIR/dev/gallery.npz     DIR/dev/probes.npz
    DIR/eval/gallery.npz    DIR/eval/probes.npz

Each file holds samples in the format of :mod:`holue.datasets.formats.samples`, as ``.npz`` or as ``.parquet``. The
gallery is pooled per ``subject_id``; probes are pooled per ``template_id`` where it is given, else every
row is a probe. Probes whose subject is not in the gallery are non-mated. No subject may be in both ``dev/``
and ``eval/``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holue.artifact import whole_folder
from holue.datasets.formats.part import part_from_samples
from holue.datasets.formats.samples import SUFFIXES, Samples, read_samples, write_samples
from holue.errors import InvalidFileError, InvalidInputError
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart, check_open_set, listed
from holue.gallery.subjects import Subjects

DEVELOPMENT, EVALUATION = "dev", "eval"
_ROLES = {DEVELOPMENT: "development", EVALUATION: "evaluation"}


@dataclass(frozen=True, eq=False)
class FolderSamples:
    """The four files of a folder protocol, before pooling."""

    dev_gallery: Samples
    dev_probes: Samples
    eval_gallery: Samples
    eval_probes: Samples

    def files(self) -> dict[str, Samples]:
        """The samples by the name of their file, without its suffix."""
        return {
            "dev/gallery": self.dev_gallery,
            "dev/probes": self.dev_probes,
            "eval/gallery": self.eval_gallery,
            "eval/probes": self.eval_probes,
        }

    def protocol(self, name: str, *, weighting: str = "uniform") -> IdentificationProtocol:
        """The samples pooled to templates; an error names the file at fault."""
        development, evaluation = (
            _part(role, gallery, probes, weighting)
            for role, gallery, probes in (
                (DEVELOPMENT, self.dev_gallery, self.dev_probes),
                (EVALUATION, self.eval_gallery, self.eval_probes),
            )
        )
        try:
            return IdentificationProtocol(name, development, evaluation)
        except InvalidInputError as error:
            files = f"{self.dev_probes.origin} and {self.eval_probes.origin}, or their galleries"
            raise InvalidFileError(f"{files}: {error}") from error


def read_folder(path: str | Path) -> FolderSamples:
    """The samples of the four files, each checked on its own."""
    folder = Path(path)
    if not folder.is_dir():
        raise InvalidFileError(f"{folder}: no such folder; expected a folder with {DEVELOPMENT}/ and {EVALUATION}/")
    absent = [part for part in _ROLES if not (folder / part).is_dir()]
    if absent:
        raise InvalidFileError(
            f"{folder}: missing folder {listed(absent)}; expected {DEVELOPMENT}/ and {EVALUATION}/, "
            f"found {listed(sorted(entry.name for entry in folder.iterdir())) or 'nothing'}"
        )
    files = (_find(folder / part, noun) for part in _ROLES for noun in ("gallery", "probes"))
    return FolderSamples(*(read_samples(file) for file in files))


def load_folder(path: str | Path, *, weighting: str = "uniform") -> IdentificationProtocol:
    """A folder of embeddings → protocol.

    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in ("dev", "eval"):
    ...         Path(folder, part).mkdir()
    ...         for noun, ids in (("gallery", ["a", "b"]), ("probes", ["a", "b", "c"])):
    ...             subjects = [f"{part}-{name}" for name in ids]
    ...             np.savez(f"{folder}/{part}/{noun}.npz",
    ...                      embeddings=rng.normal(size=(len(ids), 4)), subject_id=subjects)
    ...     load_folder(folder).evaluation
    ProtocolPart(2 subjects enrolled, 2 mated and 1 non-mated probes, d=4)
    """
    return read_folder(path).protocol(Path(path).resolve().name, weighting=weighting)


def write_folder(samples: FolderSamples, path: str | Path, *, suffix: str = ".npz") -> None:
    """Write the four files, all or none: an existing path is refused, a failure leaves nothing behind."""
    path = Path(path)
    if os.path.lexists(path):
        raise InvalidFileError(f"{path}: exists already; remove it or choose another folder")
    if not path.parent.is_dir():
        raise InvalidFileError(f"{path.parent}: no such folder to write {path.name} in")
    with whole_folder(path) as partial:
        for name, table in samples.files().items():
            file = partial / f"{name}{suffix}"
            file.parent.mkdir(exist_ok=True)
            write_samples(table, file)


def save_folder(protocol: IdentificationProtocol, path: str | Path, *, suffix: str = ".npz") -> None:
    """Write a protocol's templates as a folder protocol: any loaded protocol can then be evaluated from disk.

    Where the parts come from different sources, subject ids become ``source:id``: equal ids are different
    people there. The quality −H(σ²) is written as a variance (n, 1), whose harmonic mean it is.
    """
    one_source = protocol.development.source == protocol.evaluation.source
    parts = (_templates(part, "" if one_source else part.source) for part in protocol.parts.values())
    (dev_gallery, dev_probes), (eval_gallery, eval_probes) = parts
    write_folder(FolderSamples(dev_gallery, dev_probes, eval_gallery, eval_probes), path, suffix=suffix)


def _find(folder: Path, noun: str) -> Path:
    found = [folder / f"{noun}{suffix}" for suffix in SUFFIXES if (folder / f"{noun}{suffix}").exists()]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidFileError(f"{folder}: holds both {found[0].name} and {found[1].name}; keep one of them")
    raise InvalidFileError(
        f"{folder / noun}.npz: no such file (nor {noun}.parquet); the folder holds "
        f"{listed(sorted(entry.name for entry in folder.iterdir())) or 'nothing'}"
    )


def _part(role: str, gallery: Samples, probes: Samples, weighting: str) -> ProtocolPart:
    part = part_from_samples(gallery, probes, weighting=weighting)
    try:
        check_open_set(_ROLES[role], part)
    except InvalidInputError as error:
        raise InvalidFileError(f"{probes.origin}: {error}") from error
    return part


def _templates(part: ProtocolPart, prefix: str) -> tuple[Samples, Samples]:
    gallery, probes, qualities = part.gallery, part.probes, part.qualities
    enrolled = Samples(
        gallery.directions,
        subject_id=_qualified(gallery.subjects, prefix),
        concentration=gallery.concentrations,
    )
    pfe = qualities.get("pfe")
    names = part.probe_samples
    searched = Samples(
        probes.directions,
        subject_id=_qualified(part.probe_subjects, prefix),
        template_id=part.probe_templates,
        # A template of several samples has no name, and a file has names for all rows or none.
        sample_id=None if names is None or (names == "").any() else names,
        group=part.groups,
        more_groups=part.more_groups,
        concentration=probes.concentrations,
        scale=qualities.get("scale"),
        quality=qualities.get("quality"),
        variance=None if pfe is None else -pfe[:, None],
    )
    return enrolled, searched


def _qualified(subjects: Subjects, prefix: str) -> Subjects:
    return np.array([f"{prefix}:{subject}" for subject in subjects.tolist()]) if prefix else subjects
