"""PaperSet: one of the paper's data sets: its files, how they become protocols, and the numbers that the paper printed.

    ijbc, ijbb    DIR/{name}/ with the 1:N lists, DIR/ms1mv2/ with the development lists; each with its embeddings
    whale         DIR/train.csv, one file of embeddings
    voxblink      DIR/large/perspk5/, DIR/medium/perspk5/, one file of embeddings

A file of embeddings is in its place under its usual name, or is named by an option. Templates are pooled once and kept in the
cache, under the hash of all files that they are made of; a later run starts from them.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holue.datasets.formats.folder import load_folder, save_folder
from holue.datasets.protocols.ijb import load_ijb
from holue.datasets.protocols.ms1m import load_ms1m
from holue.datasets.protocols.voxblink import load_voxblink
from holue.datasets.protocols.whale import load_whale
from holue.errors import InvalidParameterError
from holue.evaluation.protocol import IdentificationProtocol
from holue.experiments.cache import cache_location, file_digest
from holue.experiments.experiment import MAIN, Experiment, Protocols, Size
from holue.experiments.paper.layout import Needed, check_layout

logger = logging.getLogger(__name__)

MADE_UP = "made-up.txt"
"""A file of this name says that a folder is a stand-in."""
POOLING = 1
"""Raised when the same files would give other templates."""
EMBEDDINGS = "what `holue embed` and `holue apply` write, or the keys embs and unc of the paper's code"


@dataclass(frozen=True)
class Sources:
    """Where the files of a run are."""

    data: Path
    embeddings: Path | None = None  # in place of the file in its usual place
    development: Path | None = None


Loader = Callable[[Sources, str], IdentificationProtocol]


@dataclass(frozen=True)
class PaperSet:
    """A data set of the paper."""

    name: str
    title: str
    column: str  # of the paper's Table 1
    needed: tuple[Needed, ...]
    galleries: tuple[str, ...]  # each is a protocol of its own, and the numbers are averaged
    fpir: tuple[float, ...]
    load: Loader
    embeddings: tuple[str, ...]  # usual places of the embeddings: of the evaluation part, and of the development part
    notes: tuple[str, ...] = field(default=())

    def experiment(self, sources: Sources) -> Experiment:
        """The experiment on these files."""

        def protocols(size: Size) -> Protocols:
            self.check(sources)
            return lambda number: self._gallery(sources, number, size)

        title = f"{self.title} (made-up files)" if (sources.data / MADE_UP).is_file() else self.title
        return Experiment(
            self.name, title, protocols, splits=len(self.galleries), fpir=self.fpir, oracle=True, paper=self.column
        )

    def check(self, sources: Sources) -> None:
        """Refuse a folder that lacks files, naming all of them."""
        given = (sources.embeddings, sources.development)
        if sources.development is not None and len(self.embeddings) < 2:
            raise InvalidParameterError(f"--dev-embeddings: {self.name} has one file of embeddings for both parts")
        wanted = [Needed((name,), EMBEDDINGS) for name, file in zip(self.embeddings, given) if file is None]
        check_layout(sources.data, [*self.needed, *wanted], self.title)
        for file in given:
            if file is not None and not file.is_file():
                raise InvalidParameterError(f"{file}: no such file of embeddings")

    def _gallery(self, sources: Sources, number: int, size: Size) -> Mapping[str, IdentificationProtocol]:
        gallery = self.galleries[number]
        digest = hashlib.sha256(f"{POOLING} {self.name} {gallery}".encode())
        for file in self.files(sources):
            digest.update(_digest(file).encode())
        kept = cache_location(size.cache_dir, "templates") / digest.hexdigest()[:32]
        if kept.is_dir():
            logger.info("%s %s: templates from %s", self.name, gallery, kept)
            return {MAIN: load_folder(kept)}
        protocol = self.load(sources, gallery)
        kept.parent.mkdir(parents=True, exist_ok=True)
        save_folder(protocol, kept)
        # What is evaluated is what a later run reads: a stored template is the same to the last bit.
        return {MAIN: load_folder(kept)}

    def files(self, sources: Sources) -> list[Path]:
        """Every file that the templates are made of."""
        found = [one.find(sources.data) for one in self.needed]
        given = (sources.embeddings, sources.development)
        return [
            *(file for file in found if file is not None),
            *(sources.data / name if file is None else file for name, file in zip(self.embeddings, given)),
        ]


_DIGESTS: dict[tuple[Path, int, int], str] = {}


def _digest(path: Path) -> str:
    """The hash of a file, taken once in a process: both galleries of IJB rest on the same gigabyte."""
    status = path.stat()
    key = path.resolve(), status.st_mtime_ns, status.st_size
    if key not in _DIGESTS:
        _DIGESTS[key] = file_digest(path)
    return _DIGESTS[key]


def _ijb(name: str, title: str, galleries: Sequence[str]) -> PaperSet:
    def either(folder: str, *names: str) -> tuple[str, ...]:
        return tuple(f"{folder}/{place}{one}" for one in names for place in ("", "meta/"))

    def load(sources: Sources, gallery: str) -> IdentificationProtocol:
        ms1m = sources.data / "ms1mv2"
        development = load_ms1m(ms1m, sources.development or ms1m / "ms1mv2_embs.npz")
        embeddings = sources.embeddings or sources.data / name / f"{name}_embs.npz"
        evaluation = load_ijb(sources.data / name, embeddings, name=name, gallery=gallery)  # type: ignore[arg-type]
        return IdentificationProtocol(f"{name} {gallery}", development, evaluation)

    lists = [
        Needed(either(name, f"{name}_face_tid_mid.txt"), "template and medium of every image, one line each"),
        *(
            Needed(
                either(name, f"{name}_1N_gallery_{one}.csv", f"{name}_1N_gallery_S{one[1]}.csv"),
                "a gallery, one row per image",
            )
            for one in galleries
        ),
        Needed(either(name, f"{name}_1N_probe_mixed.csv"), "the mixed probes, one row per image"),
        Needed(either("ms1mv2", "ms1m_face_tid_mid.txt"), "template and medium of every development image"),
        Needed(either("ms1mv2", "ms1m_face_1N_gallery_G1.csv", "ms1m_1N_gallery_G1.csv"), "the development gallery"),
        Needed(either("ms1mv2", "ms1m_face_1N_probe_mixed.csv", "ms1m_1N_probe_mixed.csv"), "the development probes"),
    ]
    return PaperSet(
        name,
        title,
        title,
        tuple(lists),
        tuple(galleries),
        (0.05, 0.1, 0.2),
        load,
        (f"{name}/{name}_embs.npz", "ms1mv2/ms1mv2_embs.npz"),
    )


def _whale(sources: Sources, gallery: str) -> IdentificationProtocol:
    return load_whale(sources.data / "train.csv", sources.embeddings or sources.data / "whale_embs.npz")


def _voxblink(sources: Sources, gallery: str) -> IdentificationProtocol:
    # Speakers of both lists leave development: nothing is learned on whom it is measured.
    return load_voxblink(sources.data, sources.embeddings or sources.data / "voxblink_embs.npz", drop_shared=True)


PAPER_SETS: dict[str, PaperSet] = {
    one.name: one
    for one in (
        _ijb("ijbc", "IJB-C", ("G1", "G2")),
        _ijb("ijbb", "IJB-B", ("G1", "G2")),
        PaperSet(
            "whale",
            "Happywhale, the paper's Whale protocol",
            "Whale",
            (Needed(("train.csv",), "image, species and individual of every training image of the competition"),),
            ("all",),
            (0.05, 0.1, 0.2),
            _whale,
            ("whale_embs.npz",),
        ),
        PaperSet(
            "voxblink",
            "VoxBlink2, VB-Eval-L-5",
            "VB-Eval-L-5",
            tuple(
                Needed((f"{size}/perspk5/{what}",), f"the {what} list of VB-Eval-{size[0].upper()}-5")
                for size in ("large", "medium")
                for what in ("gallery", "probe")
            ),
            ("all",),
            (0.01, 0.05, 0.1),
            _voxblink,
            ("voxblink_embs.npz",),
        ),
    )
}
"""The paper's data sets by the name of their experiment."""
