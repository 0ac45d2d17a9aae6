"""What the examples share: whether the data is here, the glyph world in its place, and a picture of answers."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holue import UNKNOWN
from holue.artifact.cache_directory import default_cache_directory
from holue.datasets.directory import data_directory
from holue.embedding.heads.norm_concentration import NormConcentration
from holue.embedding.inputs.model_input import RawArray
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.specification import preset
from holue.embedding.training.class_centres import ClassCentres
from holue.evaluation.report.drawing import GREEN, VERMILLION, look
from holue.recognition.answer.identifications import Identifications

OUT = Path("runs")


@dataclass(frozen=True, eq=False)
class Part:
    """Samples that are enrolled, samples that are searched for among them, and how poor each of those was made."""

    gallery: EmbeddingFile
    probes: EmbeddingFile
    level: np.ndarray[Any, np.dtype[np.str_]]

    @property
    def truth(self) -> np.ndarray[Any, np.dtype[np.object_]]:
        """What the right answers are: the subject of every probe, or UNKNOWN where nobody enrolled it."""
        subjects = self.probes.subject_id
        return np.where(np.isin(subjects, self.gallery.subject_id), subjects.astype(object), UNKNOWN)


@dataclass(frozen=True, eq=False)
class Task:
    """People to calibrate on, other people to recognise, and their pictures by sample id, where there are any."""

    development: Part
    evaluation: Part
    pictures: Mapping[str, RawArray]


def missing(data: str, model: str) -> str | None:
    """What of the data and the model is not on this machine, or None where both are there."""
    paths = {"HOLUE_DATA": data_directory() / data, "HOLUE_MODELS": preset(model).path}
    absent = [f"{path.name} (set {variable})" for variable, path in paths.items() if not path.exists()]
    return " and ".join(absent) or None


def cached_embedder(model: str) -> OnnxEmbedder:
    """The model with one thread; what it has embedded once is only read from HOLUE_CACHE the next time."""
    return OnnxEmbedder.open(model, cache_dir=default_cache_directory() / "embeddings")


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def read_members(archive: Path, names: Sequence[str], embedder: OnnxEmbedder) -> list[RawArray]:
    """Images or waveforms of a zip, as the model's input decodes them."""
    with zipfile.ZipFile(archive) as opened:
        return [embedder.specification.model_input.decode(opened.read(name), name) for name in names]


def norm_concentration(development: Part) -> NormConcentration:
    """How sharp a sample is, from the length of its vector; learnt from how far probes fall from their own template."""
    gallery, mated = development.gallery, development.truth != UNKNOWN
    centres = ClassCentres.from_samples(gallery.embeddings, gallery.subject_id)
    probes = development.probes.take(mated)
    return NormConcentration.fit(probes.embeddings, probes.subject_id, centres=centres)


def glyph_task(absent: str, subjects: int = 200) -> Task:
    """The world that comes with the package: characters as subjects, renderings as samples."""
    from holue.datasets.glyphs.model import glyph_embedder
    from holue.datasets.glyphs.world import GlyphPart, glyph_world

    print(f"Not here: {absent}. Characters of the glyph world stand in.\n")
    world, embedder = glyph_world(subjects=subjects), glyph_embedder()

    def part(drawn: GlyphPart) -> Part:
        return Part(embedder.embed(drawn.gallery).file, embedder.embed(drawn.probes).file, drawn.probes.level)

    samples = [some for half in (world.development, world.evaluation) for some in (half.gallery, half.probes)]
    pictures = {name: image for some in samples for name, image in zip(some.sample_id.tolist(), some.images)}
    return Task(part(world.development), part(world.evaluation), pictures)


def from_certain_to_uncertain(answers: Identifications, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows in equal steps from the most to the least certain answer."""
    order = np.argsort(answers.uncertainty, kind="stable")
    return order[np.linspace(0, len(order) - 1, count).astype(np.int64)]


def print_answers(answers: Identifications, part: Part, rows: Sequence[int]) -> None:
    """A line per answer: what was searched for, what was answered, how uncertain and why."""
    width = max(len(str(name)) for name in (*part.truth[rows], *answers.subject[rows], "UNKNOWN"))
    print(f"{'truth':{width}}  {'answer':{width}}         uncertainty  sample         reason")
    for row in rows:
        answer, truth = answers[int(row)], part.truth[row]
        verdict = "right" if answer.subject == truth else "WRONG"
        print(
            f"{truth!s:{width}}  {answer.subject!s:{width}}  {verdict}  {answer.uncertainty:11.2f}  "
            f"{part.level[row]:13}  {answer.reason}"
        )


def draw_answers(name: str, task: Task, answers: Identifications, rows: Sequence[int]) -> Path:
    """A row per probe: its picture, then the enrolled pictures it was compared with, the best first."""
    part, path = task.evaluation, OUT / f"{name}.png"
    enrolled = {str(who): str(sample) for who, sample in zip(part.gallery.subject_id, part.gallery.sample_id)}
    with look(name):
        from matplotlib.figure import Figure

        columns = 1 + answers.candidate_subjects.shape[1]
        figure = Figure(figsize=(1.9 * columns, 1.75 * len(rows)), layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False)
        figure.suptitle("What arrived (left), and the enrolled it is most like", fontsize=11)
        for axes, row in zip(grid, rows):
            answer, truth = answers[int(row)], part.truth[row]
            right = answer.subject == truth
            said = f"nobody ({answer.p_unknown:.2f})" if answer.subject is UNKNOWN else short(answer.subject)
            _show(axes[0], task.pictures[str(part.probes.sample_id[row])])
            axes[0].set_title(f"probe, {part.level[row]}", fontsize=9)
            axes[0].set_xlabel(
                f"{said}: {'right' if right else 'wrong'}\nuncertainty {answer.uncertainty:.2f}",
                color=GREEN if right else VERMILLION,
                fontsize=9,
            )
            for ax, candidate in zip(axes[1:], answer.candidates):
                _show(ax, task.pictures[enrolled[str(candidate.subject)]])
                ax.set_title(short(candidate.subject), fontsize=9)
                likeness = f"cosine {candidate.score:.2f}, p {candidate.probability:.2f}"
                ax.set_xlabel(f"{likeness}\nthe truth" if candidate.subject == truth else likeness, fontsize=9)
    OUT.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def short(subject: object) -> str:
    """A name that fits above a small picture."""
    text = str(subject).rpartition("/")[2].replace("_", " ")
    return text if len(text) <= 20 else text[:19] + "…"


def _show(ax: Any, picture: RawArray) -> None:
    ax.imshow(picture, cmap="gray", vmin=0, vmax=255)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.grid(False)
