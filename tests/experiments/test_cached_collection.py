"""A collection is embedded once: the cache is keyed by content, resumes, and forgets nothing else."""

import io
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from holue.datasets.degradation import draw_image_degradation
from holue.datasets.directory import data_directory
from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.samples import Sample
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidFileError
from holue.experiments.sets.archive import Archive, read_table
from holue.experiments.versions import mixed, random_rank


@dataclass
class CountingEmbedder:
    """Embeds an image as its mean and its deviation, and remembers how many samples it was given."""

    fingerprint: str = "f00d"
    chunk_size: int = 2
    breaks_at: str = ""
    specification: object = field(
        default_factory=lambda: SimpleNamespace(name="tiny", model_input=ImageInput(8, 8), features="features")
    )
    embedded: list[str] = field(default_factory=list)

    def embed(self, samples: list[Sample]) -> EmbeddingFile:
        if self.breaks_at and any(sample.sample_id == self.breaks_at for sample in samples):
            raise KeyboardInterrupt
        self.embedded += [sample.sample_id for sample in samples]
        pixels = [np.asarray(sample.load(), dtype=float) for sample in samples]
        outputs = np.array([[image.mean() + 1, image.std() + 1] for image in pixels], dtype=np.float32)
        ids = np.array([sample.sample_id for sample in samples])
        subjects = np.array([sample.subject_id for sample in samples])
        return EmbeddingFile(outputs, outputs * 2, ids, subjects, self.fingerprint, "tiny")


NAMES, SUBJECTS = ["a/1.png", "a/2.png", "b/1.png", "b/2.png", "c/1.png"], ["a", "a", "b", "b", "c"]


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    from PIL import Image

    rng = np.random.default_rng(0)
    path = tmp_path / "faces.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in NAMES:
            stream = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (8, 8, 3)).astype(np.uint8)).save(stream, "PNG")
            archive.writestr(name, stream.getvalue())
    return path


def test_a_second_run_embeds_nothing(zipped: Path, tmp_path: Path) -> None:
    first, second = CountingEmbedder(), CountingEmbedder()
    once = Archive(zipped, first, tmp_path).versions(NAMES, SUBJECTS, draw_image_degradation, 2)  # type: ignore[arg-type]
    again = Archive(zipped, second, tmp_path).versions(NAMES, SUBJECTS, draw_image_degradation, 2)  # type: ignore[arg-type]
    assert len(first.embedded) == 15
    assert not second.embedded
    assert (once.clean.embeddings == again.clean.embeddings).all()
    assert (once.levels[1] == again.levels[1]).all()


def test_interrupted_work_goes_on_where_it_stopped(zipped: Path, tmp_path: Path) -> None:
    broken = CountingEmbedder(breaks_at="b/2.png")
    with pytest.raises(KeyboardInterrupt):
        Archive(zipped, broken, tmp_path).clean(NAMES, SUBJECTS)  # type: ignore[arg-type]
    whole = CountingEmbedder()
    file = Archive(zipped, whole, tmp_path).clean(NAMES, SUBJECTS)  # type: ignore[arg-type]
    assert broken.embedded == ["a/1.png", "a/2.png"]
    assert whole.embedded == ["b/1.png", "b/2.png", "c/1.png"]
    assert file.sample_id.tolist() == NAMES


def test_another_model_or_another_archive_is_embedded_anew(zipped: Path, tmp_path: Path) -> None:
    Archive(zipped, CountingEmbedder(), tmp_path).clean(NAMES, SUBJECTS)  # type: ignore[arg-type]
    other_model = CountingEmbedder(fingerprint="beef")
    Archive(zipped, other_model, tmp_path).clean(NAMES, SUBJECTS)  # type: ignore[arg-type]
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.writestr("note.txt", "changed")
    other_archive = CountingEmbedder()
    Archive(zipped, other_archive, tmp_path).clean(NAMES, SUBJECTS)  # type: ignore[arg-type]
    assert len(other_model.embedded) == len(other_archive.embedded) == 5


def test_missing_and_damaged_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidFileError, match=r"nowhere\.zip: no such file"):
        Archive(tmp_path / "nowhere.zip", CountingEmbedder()).clean(NAMES, SUBJECTS)  # type: ignore[arg-type]
    (tmp_path / "torn.zip").write_bytes(b"PK")
    with pytest.raises(InvalidFileError, match="damaged"):
        _ = Archive(tmp_path / "torn.zip", CountingEmbedder()).names  # type: ignore[arg-type]
    (tmp_path / "table.csv").write_text("file,who\n1.png,ann\n")
    with pytest.raises(InvalidFileError, match="'speaker' is missing"):
        read_table(tmp_path / "table.csv", ("file", "speaker"))


def test_heads_learn_from_samples_that_are_no_references(zipped: Path, tmp_path: Path) -> None:
    versions = Archive(zipped, CountingEmbedder(), tmp_path).versions(  # type: ignore[arg-type]
        NAMES, SUBJECTS, draw_image_degradation, 2
    )
    rng = np.random.default_rng(0)
    rank = random_rank(versions.subjects, rng)
    people = versions.training_people(np.array(["a", "b"]), rank, rng)
    references = set(people.references.sample_id.tolist())
    assert len(references) == 2
    assert not references & {name.split(" (")[0] for name in people.learning.sample_id.tolist()}
    assert len(people.learning) == 2 * 3
    assert sorted(name.split(" (")[0] for name in people.pairs.sample_id.tolist()) == NAMES[:4]


def test_each_sample_is_mixed_in_once() -> None:
    ids = np.array([str(i) for i in range(9)])
    files = tuple(EmbeddingFile(np.full((9, 2), v + 1.0), np.ones((9, 2)), ids, ids, "f", "m") for v in range(3))
    both = mixed(files, np.random.default_rng(0))
    assert sorted(both.sample_id.tolist()) == ids.tolist()
    assert len(np.unique(both.embeddings)) > 1


@pytest.mark.data
def test_roles_of_the_real_animals_share_nobody() -> None:
    folder = data_directory() / "chimpanzees"
    if not folder.is_dir():
        pytest.skip(f"the real data is not at {data_directory()}; set HOLUE_DATA")
    from holue.experiments.sets.chimpanzees import Roles

    rows = read_table(folder / "labels.csv", ("subset", "identity"))
    animals = np.array([f"{row['subset']}/{row['identity']}" for row in rows])
    roles = Roles.draw(animals, 12, np.random.default_rng(0))
    dealt = [roles.development, roles.evaluation, roles.heads, roles.development_strangers, roles.evaluation_strangers]
    everyone = np.concatenate([*dealt, *roles.rare])
    assert len(everyone) == len(np.unique(everyone)) == len(np.unique(animals)) == 102
