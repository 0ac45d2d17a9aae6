"""Stand-in: made-up files of the size of one of the paper's data sets, to try a command before the licence comes.

Lists have the distributed layout and the published counts. Real lists are used where a folder holds them. Embeddings come from a
world with known concentrations: a person's direction leans to one of a few common ones, a sample's κ_x is log-normal and
its direction a draw from vMF(person, κ_x). The file gives κ_x itself, and a variance and a scale that know it less well. Every
number that comes out is about this world and says nothing about the real data.

    ijbc       3 531 subjects in two galleries, 19 593 probe templates, 469 375 images
    ijbb       1 845 subjects, 10 270 probe templates, 227 630 images
    ms1mv2     1 772 enrolled, 14 124 probe templates (255 245 images in the paper's files)
    whale      15 587 individuals in 51 033 images, 9 258 of them with one
    voxblink   counts of our own (10 000 and 5 000 enrolled speakers): the published ones are not at hand
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holue.artifact.archive import write_archive
from holue.artifact.whole import whole_folder
from holue.datasets.protocols.ijb import read_template_csv
from holue.datasets.protocols.whale import read_table
from holue.errors import InvalidFileError, InvalidParameterError
from holue.experiments.paper.paper_set import MADE_UP
from holue.sphere import vmf

Codes = npt.NDArray[np.int64]

DIM = 512
COMMON, LEANING = 40, 0.18
CONCENTRATION, SPREAD = 400.0, 0.9
"""Median of κ_x and the deviation of its logarithm: a cosine of 0.58 to the person's direction in the median, at d = 512."""
ROWS_DRAWN_AT_ONCE = 16384
IJB = {"ijbc": ((1772, 1759), 19_593, 469_375), "ijbb": ((931, 914), 10_270, 227_630)}
"""Subjects of both galleries, probe templates, images."""
WHALES = (15_587, 9_258, 51_033)
SPEAKERS = {"large": (10_000, 10_000), "medium": (5_000, 5_000)}


def write_stand_in(name: str, folder: Path, *, lists: Path | None = None, part: float = 1.0, seed: int = 0) -> None:
    """Write the files of ``name`` into a new folder; ``lists`` holds real ones, ``part`` makes all counts smaller."""
    if folder.exists():
        raise InvalidFileError(f"{folder}: exists already; a stand-in is written into a new folder, so choose another")
    if name not in WRITERS:
        raise InvalidParameterError(f"there is no stand-in for {name!r}; choose from {', '.join(WRITERS)}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(folder) as target:
        (target / MADE_UP).write_text("These files are made up: no number that comes of them is about real data.\n")
        WRITERS[name](_Writer(target, lists, part, np.random.default_rng(seed)))


@dataclass(frozen=True, eq=False)
class _Writer:
    target: Path
    lists: Path | None
    part: float
    rng: np.random.Generator

    def count(self, whole: int) -> int:
        return max(round(whole * self.part), 12)

    def real(self, *names: str) -> Path | None:
        """A real list of one of these names, where the counts are not made smaller."""
        if self.lists is None or self.part < 1:
            return None
        return next((self.lists / name for name in names if (self.lists / name).is_file()), None)

    def write(self, name: str, lines: Iterable[str]) -> None:
        path = self.target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def embeddings(self, name: str, person: Codes, *, world: int, samples: list[str] | None = None) -> None:
        """Samples of these people; ``world`` keeps the people of two files apart."""
        people = np.random.default_rng([world, 7])
        common = _unit(people.normal(size=(COMMON, DIM)))
        codes, owner = np.unique(person, return_inverse=True)
        means = people.normal(size=(len(codes), DIM)) / np.sqrt(DIM)
        lean = LEANING * people.gamma(2.0, 1.0, size=(len(codes), 1))
        means = _unit(means + lean * common[people.integers(COMMON, size=len(codes))])
        kappa = CONCENTRATION * np.exp(SPREAD * self.rng.normal(size=len(person)))
        rows = np.empty((len(person), DIM), dtype=np.float32)
        for start in range(0, len(person), ROWS_DRAWN_AT_ONCE):
            some = slice(start, start + ROWS_DRAWN_AT_ONCE)
            rows[some] = vmf.sample(means[owner[some]], kappa[some], self.rng)
        noise = np.exp(0.5 * self.rng.normal(size=(2, len(person))))
        columns = {
            "embeddings": rows,
            "concentration": kappa,
            "variance": (noise[0] / kappa).astype(np.float32)[:, None],
            "scale": np.sqrt(kappa) * noise[1],
        }
        if samples is not None:
            columns["sample_id"] = np.array(samples)
        (self.target / name).parent.mkdir(parents=True, exist_ok=True)
        write_archive(self.target / name, columns)


def _ijb(name: str) -> Callable[[_Writer], None]:
    def write(writer: _Writer) -> None:
        sizes, probes, images = IJB[name]
        rows: list[tuple[Codes, Codes]] = []  # (template, subject) of every image
        for number, size in enumerate(sizes, start=1):
            file = writer.real(f"{name}_1N_gallery_G{number}.csv")
            if file is not None:
                listed = read_template_csv(file)
                rows.append((listed.template_id.astype(np.int64), listed.subject_id.astype(np.int64)))
            else:
                subjects = np.arange(writer.count(size)) + number * 100_000
                rows.append(_templates(subjects, subjects, round(3.3 * len(subjects)), writer.rng))
            _write_csv(writer, f"{name}/{name}_1N_gallery_G{number}.csv", rows[-1])
        everybody = np.unique(np.concatenate([subject for _, subject in rows]))
        template = np.arange(writer.count(probes)) + 1_000_000
        # Nobody is without a probe: each list is searched for everyone in it and everyone in the other.
        owner = np.concatenate([everybody, writer.rng.choice(everybody, max(len(template) - len(everybody), 0))])
        left = max(writer.count(images) - sum(len(one) for one, _ in rows), len(template))
        rows.append(_templates(template, owner[: len(template)], left, writer.rng))
        _write_csv(writer, f"{name}/{name}_1N_probe_mixed.csv", rows[-1])
        _write_images(writer, f"{name}/{name}_face_tid_mid.txt", rows)
        subjects = np.concatenate([subject for _, subject in rows])
        writer.embeddings(f"{name}/{name}_embs.npz", subjects, world=1)
        _write_ms1m(writer)

    return write


def _write_ms1m(writer: _Writer) -> None:
    names = "ms1m_face_1N_gallery_G1.csv", "ms1m_face_1N_probe_mixed.csv"
    found = [writer.real(name, f"ms1mv2/{name}", f"../ms1mv2/{name}") for name in names]
    if found[0] is not None and found[1] is not None:
        listed = [read_template_csv(file) for file in found if file is not None]
        rows = [(one.template_id.astype(np.int64), one.subject_id.astype(np.int64)) for one in listed]
    else:
        known = writer.count(1772)
        subjects = np.arange(known + writer.count(1759))
        enrolled = _templates(subjects[:known] * 5 + 4, subjects[:known], 18 * known, writer.rng)
        probes = (subjects[:, None] * 5 + np.arange(4)).ravel()
        rows = [enrolled, _templates(probes, probes // 5, 16 * len(probes), writer.rng)]
    for name, one in zip(names, rows):
        _write_csv(writer, f"ms1mv2/{name}", one)
    _write_images(writer, "ms1mv2/ms1m_face_tid_mid.txt", rows)
    writer.embeddings("ms1mv2/ms1mv2_embs.npz", np.concatenate([subject for _, subject in rows]), world=2)


def _write_whale(writer: _Writer) -> None:
    file = writer.real("train.csv")
    if file is not None:
        images, individuals = read_table(file)
    else:
        animals, single, total = (writer.count(whole) for whole in WHALES)
        several = np.arange(single, animals)
        extra = writer.rng.choice(several, max(total - single - 2 * len(several), 0))
        who = np.concatenate([np.arange(single), several, several, extra])
        images = np.array([f"{i:08d}.jpg" for i in range(len(who))])
        individuals = np.array([f"whale{one:06d}" for one in who])
    table = [f"{image},unknown,{animal}" for image, animal in zip(images, individuals)]
    writer.write("train.csv", ["image,species,individual_id", *table])
    owner = np.unique(individuals, return_inverse=True)[1].astype(np.int64)
    writer.embeddings("whale_embs.npz", owner, world=3, samples=[str(image) for image in images])


def _write_voxblink(writer: _Writer) -> None:
    owner: list[int] = []
    samples: list[str] = []
    first = 0
    for size, (known, unknown) in SPEAKERS.items():
        known, unknown = writer.count(known), writer.count(unknown)
        gallery, probe = [], []
        for speaker in range(known + unknown):
            for utterance in range(5 if speaker < known else 0):
                gallery.append((first + speaker, f"id{first + speaker:06d}/enrol/{utterance:05d}.wav", speaker))
            for utterance in range(2):
                name = f"id{first + speaker:06d}/probe/{utterance:05d}.wav"
                probe.append((first + speaker, name, min(speaker, known)))
        for what, some in (("gallery", gallery), ("probe", probe)):
            writer.write(f"{size}/perspk5/{what}", [f"{name} {label}" for _, name, label in some])
            owner += [who for who, _, _ in some]
            samples += [name for _, name, _ in some]
        first += known + unknown
    writer.embeddings("voxblink_embs.npz", np.array(owner, dtype=np.int64), world=4, samples=samples)


WRITERS: dict[str, Callable[[_Writer], None]] = {
    "ijbc": _ijb("ijbc"),
    "ijbb": _ijb("ijbb"),
    "whale": _write_whale,
    "voxblink": _write_voxblink,
}


def _templates(template: Codes, subject: Codes, images: int, rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Images of templates, at least one each; half of the templates have one, as in IJB."""
    many = rng.permutation(len(template))[: max(len(template) // 2, 1)]
    extra = rng.multinomial(max(images - len(template), 0), rng.dirichlet(np.full(len(many), 0.5)))
    count = np.ones(len(template), dtype=np.int64)
    count[many] += extra
    return np.repeat(template, count), np.repeat(subject, count)


def _write_csv(writer: _Writer, name: str, rows: tuple[Codes, Codes]) -> None:
    writer.write(name, ["TEMPLATE_ID,SUBJECT_ID,FILENAME", *(f"{t},{s},0" for t, s in zip(*rows))])


def _write_images(writer: _Writer, name: str, rows: list[tuple[Codes, Codes]]) -> None:
    """The image list: frames of a template come in media of five."""
    template = np.concatenate([one for one, _ in rows])
    order = np.argsort(template, kind="stable")
    ordered = template[order]
    medium = np.empty(len(template), dtype=np.int64)
    medium[order] = (np.arange(len(template)) - np.searchsorted(ordered, ordered)) // 5
    lines = zip(template.tolist(), medium.tolist())
    writer.write(name, [f"{i}.jpg {one} {one * 10_000 + place}" for i, (one, place) in enumerate(lines)])


def _unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
