from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holue.datasets.protocols.ijb import load_ijb, read_embs, read_ijb, read_template_csv
from holue.errors import InvalidFileError, InvalidParameterError, InvalidSubjectsError
from holue.evaluation.protocol import IdentificationProtocol

HEADER = "TEMPLATE_ID,SUBJECT_ID,FILENAME,SIGHTING_ID,FACE_X,FACE_Y,FACE_WIDTH,FACE_HEIGHT"


class MadeIJB:
    """A small protocol in the layout of IJB: gallery templates 1..6, probe templates 11..; images interleaved."""

    def __init__(self, folder: Path, name: str = "ijbc") -> None:
        self.folder, self.name = folder, name
        self.rng = np.random.default_rng(7)
        self.subject = {1: 100, 2: 101, 3: 102, 4: 200, 5: 201, 6: 202}
        self.subject |= dict(zip(range(11, 19), (100, 101, 102, 200, 201, 202, 100, 900), strict=True))
        sizes = dict(zip(self.subject, (1, 4, 2, 3, 1, 5, 2, 7, 1, 1, 3, 2, 4, 2), strict=True))
        self.templates = self.rng.permutation(np.repeat(list(sizes), list(sizes.values())))
        self.media = self.rng.integers(0, 3, size=len(self.templates)) + 10 * self.templates
        self.embs = self.rng.normal(size=(len(self.templates), 6)).astype(np.float32)
        self.log_kappa = self.rng.normal(5, 1, size=(len(self.templates), 1)).astype(np.float32)

    def write(self, *, meta: bool = True, gallery_letter: str = "G", fourth_field: bool = False) -> Path:
        place = self.folder / "meta" if meta else self.folder
        place.mkdir(exist_ok=True)
        lines = [
            f"{row}.jpg {template} {medium}" + (f" {self.subject[template]}" if fourth_field else "")
            for row, (template, medium) in enumerate(zip(self.templates.tolist(), self.media, strict=True))
        ]
        (place / f"{self.name}_face_tid_mid.txt").write_text("\n".join(lines) + "\n")
        self.write_csv(place / f"{self.name}_1N_gallery_{gallery_letter}1.csv", (1, 2, 3))
        self.write_csv(place / f"{self.name}_1N_gallery_{gallery_letter}2.csv", (4, 5, 6))
        self.write_csv(place / f"{self.name}_1N_probe_mixed.csv", range(11, 19))
        np.savez(self.folder / "embs.npz", embs=self.embs, unc=self.log_kappa)
        return self.folder

    def write_csv(self, path: Path, templates, *, rows_per_template: int | None = None) -> None:
        rows = [HEADER]
        for template in templates:
            count = rows_per_template or int((self.templates == template).sum())
            rows += [f"{template},{self.subject[template]},img/{template}-{i}.jpg,1,2,3,4,5" for i in range(count)]
        path.write_text("\n".join(rows) + "\n")

    def slow_template(self, template: int) -> tuple[np.ndarray, float]:
        total, kappas = np.zeros(6), []
        for medium in sorted(set(self.media[self.templates == template].tolist())):
            rows = np.flatnonzero((self.templates == template) & (self.media == medium))
            unit = self.embs[rows].astype(np.float64)
            total += (unit / np.linalg.norm(unit, axis=1, keepdims=True)).mean(axis=0)
            kappas.append(np.exp(self.log_kappa[rows, 0].astype(np.float64)).mean())
        return total / np.linalg.norm(total), float(np.mean(kappas))


@pytest.fixture
def made(tmp_path) -> MadeIJB:
    return MadeIJB(tmp_path)


@pytest.mark.parametrize("meta", [True, False])
def test_templates_are_pooled_like_the_slow_reference(made, meta):
    folder = made.write(meta=meta)
    part = load_ijb(folder, folder / "embs.npz", name="ijbc", gallery="G1")
    assert part.gallery.subjects.tolist() == [100, 101, 102]
    assert part.probe_templates.tolist() == list(range(11, 19))
    assert part.mated.tolist() == [True, True, True, False, False, False, True, False]
    for row, template in enumerate(range(11, 19)):
        direction, kappa = made.slow_template(template)
        np.testing.assert_allclose(part.probes.directions[row], direction, atol=5e-7)  # float32 sums of a few samples
        assert part.qualities["concentration"][row] == pytest.approx(kappa, rel=1e-12)
    for row, template in enumerate((1, 2, 3)):
        np.testing.assert_allclose(part.gallery.directions[row], made.slow_template(template)[0], atol=5e-7)


def test_each_gallery_is_searched_on_its_own_or_both_together(made):
    folder = made.write()
    counts = {gallery: read_ijb(folder, gallery=gallery).counts for gallery in ("G1", "G2", "both")}
    assert [counts[g]["gallery_subjects"] for g in counts] == [3, 3, 6]
    assert [counts[g]["mated_probes"] for g in counts] == [4, 3, 7]
    assert [counts[g]["non_mated_probes"] for g in counts] == [4, 5, 1]
    with pytest.raises(InvalidParameterError, match="gallery must be one of G1, G2, both; got 'G3'"):
        read_ijb(folder, gallery="G3")


def test_enrolling_everyone_leaves_a_closed_set_that_a_protocol_refuses(made):
    made.subject[18] = 202
    folder = made.write()
    closed = load_ijb(folder, folder / "embs.npz", gallery="both")
    assert closed.mated.all()
    opened = load_ijb(folder, folder / "embs.npz", gallery="G1")
    with pytest.raises(InvalidSubjectsError, match="no non-mated probes"):
        IdentificationProtocol("ijbc", opened, closed)


def test_the_older_names_of_ijbb_and_a_fourth_field_are_read(tmp_path):
    made = MadeIJB(tmp_path, "ijbb")
    folder = made.write(gallery_letter="S", fourth_field=True)
    assert load_ijb(folder, folder / "embs.npz", name="ijbb", gallery="both").counts["gallery_subjects"] == 6


def test_log_variances_become_a_quality(made):
    folder = made.write()
    log_variance = made.rng.normal(size=made.embs.shape)
    np.savez(folder / "pfe.npz", embs=made.embs, unc=log_variance)
    part = load_ijb(folder, folder / "pfe.npz")
    assert part.probes.concentrations is None
    rows = np.flatnonzero(made.templates == 13)
    expected = -6 / np.exp(-log_variance[rows]).sum(axis=1)
    assert part.qualities["pfe"][2] == pytest.approx(expected.mean(), rel=1e-12)


@pytest.mark.parametrize("which", ["gallery_G1", "probe_mixed"])
def test_a_list_with_one_row_per_template_is_refused(made, which):
    folder = made.write(meta=False)
    templates = (1, 2, 3) if which == "gallery_G1" else range(11, 19)
    made.write_csv(folder / f"ijbc_1N_{which}.csv", templates, rows_per_template=1)
    with pytest.raises(InvalidFileError, match=rf"ijbc_1N_{which}\.csv: the file has one row per template"):
        load_ijb(folder, folder / "embs.npz")


def test_rows_that_disagree_with_the_images_are_refused(made):
    folder = made.write(meta=False)
    made.write_csv(folder / "ijbc_1N_gallery_G1.csv", (1, 2, 3), rows_per_template=2)
    with pytest.raises(InvalidFileError, match=r"template 1 has 2 rows here and 1 images in .*tid_mid.txt"):
        load_ijb(folder, folder / "embs.npz")


def test_templates_without_images_or_in_both_lists_are_refused(made):
    folder = made.write(meta=False)
    made.subject[7] = 102
    made.write_csv(folder / "ijbc_1N_gallery_G1.csv", (1, 7), rows_per_template=1)
    with pytest.raises(InvalidFileError, match=r"gallery_G1\.csv: 1 templates have no image in .*: 7"):
        read_ijb(folder)
    made.write_csv(folder / "ijbc_1N_gallery_G1.csv", (1, 11))
    with pytest.raises(InvalidFileError, match=r"probe_mixed\.csv: templates 11 are in .*gallery_G1\.csv too"):
        read_ijb(folder)


def test_galleries_that_share_a_subject_are_not_joined(made):
    made.subject[4] = 100
    folder = made.write()
    with pytest.raises(InvalidFileError, match="both enrol subjects 100"):
        read_ijb(folder, gallery="both")


def test_a_template_of_two_subjects_is_refused(made):
    folder = made.write(meta=False)
    (folder / "ijbc_1N_gallery_G1.csv").write_text(f"{HEADER}\n1,100,a,1,2,3,4,5\n1,101,a,1,2,3,4,5\n")
    with pytest.raises(InvalidFileError, match=r"gallery_G1\.csv: template 1 is given to subjects 100, 101"):
        read_ijb(folder)


def test_embeddings_must_be_as_many_as_the_images(made):
    folder = made.write()
    np.savez(folder / "short.npz", embs=made.embs[:-1])
    with pytest.raises(InvalidFileError, match=r"short\.npz: 37 embeddings, but .* number 38 samples"):
        load_ijb(folder, folder / "short.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"unc": np.ones((3, 1))}, "missing key 'embeddings'.*expected 'embs' and 'unc'"),
        ({"embs": np.eye(3), "unc": np.ones((3, 2))}, r"key 'unc' must be log κ \(n, 1\) or log σ² \(n, d\)"),
        ({"embs": np.eye(3), "unc": np.full((3, 1), 400.0)}, "key 'unc' must hold logarithms .* row 0 does not"),
        ({"embs": np.eye(3), "unc": np.array([[1.0], [np.nan], [1.0]])}, "key 'unc' .* row 1 does not"),
        ({"embs": np.eye(3), "unc": np.ones((2, 1))}, "key 'concentration' has shape"),
    ],
)
def test_faulty_embeddings_name_file_and_key(tmp_path, arrays, message):
    np.savez(tmp_path / "e.npz", **arrays)
    with pytest.raises(InvalidFileError, match=rf"e\.npz: .*{message}"):
        read_embs(tmp_path / "e.npz")


def test_numbered_and_named_subjects_are_not_compared(made):
    folder = made.write(meta=False)
    path = folder / "ijbc_1N_probe_mixed.csv"
    path.write_text(path.read_text().replace(",900,", ",nobody,"))
    with pytest.raises(InvalidFileError, match=r"gallery_G1\.csv and .*probe_mixed\.csv: subject_id: .* integers and"):
        read_ijb(folder)


def test_missing_files_and_columns_are_named(made):
    folder = made.write(meta=False)
    (folder / "ijbc_1N_probe_mixed.csv").write_text("template,subject\n1,2\n")
    with pytest.raises(
        InvalidFileError,
        match=r"probe_mixed\.csv: missing column 'TEMPLATE_ID', 'SUBJECT_ID'; expected .*, found 'template', 'subject'",
    ):
        read_ijb(folder)
    (folder / "ijbc_1N_probe_mixed.csv").unlink()
    with pytest.raises(InvalidFileError, match=r"ijbc_1N_probe_mixed\.csv: no such file"):
        read_ijb(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found an empty file"),
        (HEADER + "\n", "a header and no rows"),
        (HEADER + "\n1,2,a\n", "line 2 has 3 fields, the header has 8"),
    ],
)
def test_a_faulty_list_names_file_and_line(tmp_path, text, message):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(InvalidFileError, match=rf"list\.csv: .*{message}"):
        read_template_csv(tmp_path / "list.csv")


def test_a_faulty_image_list_names_its_line(made):
    folder = made.write(meta=False)
    path = folder / "ijbc_face_tid_mid.txt"
    path.write_text(path.read_text() + "stray.jpg 4\n")
    with pytest.raises(InvalidFileError, match=r"tid_mid\.txt: line 39 has 2 fields; expected 'image_name template_id"):
        read_ijb(folder)


@pytest.mark.data
@pytest.mark.parametrize(("gallery", "subjects", "images"), [("G1", 1772, 5832), ("G2", 1759, 6024)])
def test_the_real_galleries_have_the_published_number_of_subjects(real_data, gallery, subjects, images):
    table = read_template_csv(real_data(f"ijbc/ijbc_1N_gallery_{gallery}.csv"))
    assert len(table) == images
    assert len(table.templates[0]) == len(np.unique(table.subject_id)) == subjects


@pytest.mark.data
def test_the_real_galleries_enrol_different_subjects(real_data):
    first, second = (read_template_csv(real_data(f"ijbc/ijbc_1N_gallery_{g}.csv")) for g in ("G1", "G2"))
    assert not np.isin(first.subject_id, second.subject_id).any()
