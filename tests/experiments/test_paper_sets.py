"""The paper's data sets: files as they are distributed, and the report that comes of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.datasets.protocols.ijb import read_ijb
from holue.errors import InvalidFileError, InvalidParameterError
from holue.evaluation.comparison.study import evaluate
from holue.experiments.experiment import MAIN, Size, run_experiment
from holue.experiments.paper.paper_set import PAPER_SETS, Sources
from holue.experiments.paper.stand_in import write_stand_in
from holue.experiments.registry import find_experiment
from holue.experiments.tables.experiment_report import write_experiment
from holue.experiments.tables.paper_table import PAPER_TABLE_1, printed_prr

PART = 0.008


@pytest.fixture(scope="module")
def ijbc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "ijbc"
    write_stand_in("ijbc", folder, part=PART)
    return folder


def test_all_missing_files_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidFileError, match="no such folder") as error:
        PAPER_SETS["ijbc"].check(Sources(tmp_path / "nowhere"))
    with pytest.raises(InvalidFileError) as error:
        PAPER_SETS["ijbc"].check(Sources(tmp_path))
    text = str(error.value)
    assert "9 of the 9 files of IJB-C are missing" in text
    for name in (
        "ijbc_face_tid_mid.txt",
        "ijbc_1N_gallery_G2.csv",
        "ms1m_face_tid_mid.txt",
        "ijbc_embs.npz",
        "ms1mv2_embs.npz",
    ):
        assert name in text


def test_a_given_file_of_embeddings_is_not_missing_and_must_exist(ijbc: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "mine.npz"
    with pytest.raises(InvalidParameterError, match=r"mine.npz: no such file"):
        PAPER_SETS["ijbc"].check(Sources(ijbc, elsewhere))
    with pytest.raises(InvalidParameterError, match="one file of embeddings for both parts"):
        PAPER_SETS["whale"].check(Sources(ijbc, development=elsewhere))


def test_both_galleries_are_protocols_with_the_other_as_strangers(ijbc: Path, tmp_path: Path) -> None:
    protocols = find_experiment("ijbc", Sources(ijbc)).load(Size(cache_dir=tmp_path))
    first, second = (protocols(number)[MAIN].evaluation for number in range(2))
    assert not np.isin(first.gallery.subjects, second.gallery.subjects).any()
    assert np.array_equal(first.mated, ~second.mated)
    assert len(first.probes) == len(np.unique(read_ijb(ijbc / "ijbc").probes.template_id))


def test_pooled_templates_are_kept_until_a_file_changes(
    ijbc: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    experiment = find_experiment("ijbc", Sources(ijbc))
    once = experiment.load(Size(cache_dir=tmp_path))(0)[MAIN]
    kept = sorted((tmp_path / "experiments" / "templates").iterdir())
    again = experiment.load(Size(cache_dir=tmp_path))(0)[MAIN]
    assert sorted((tmp_path / "experiments" / "templates").iterdir()) == kept
    np.testing.assert_array_equal(once.evaluation.probes.directions, again.evaluation.probes.directions)
    direct = PAPER_SETS["ijbc"].load(Sources(ijbc), "G1")
    np.testing.assert_allclose(once.evaluation.probes.directions, direct.evaluation.probes.directions, atol=1e-6)
    lists = ijbc / "ijbc" / "ijbc_face_tid_mid.txt"
    text = lists.read_text()
    lists.write_text(text.replace("0.jpg", "changed.jpg", 1))
    try:
        experiment.load(Size(cache_dir=tmp_path))(0)
    finally:
        lists.write_text(text)
    assert len(list((tmp_path / "experiments" / "templates").iterdir())) == 2


def test_a_run_writes_the_papers_numbers_beside_ours(ijbc: Path, tmp_path: Path) -> None:
    experiment, size = find_experiment("ijbc", Sources(ijbc)), Size(cache_dir=tmp_path / "cache")
    document = run_experiment(experiment, fpir=[0.1], n_resamples=2, size=size)
    write_experiment(document, tmp_path / "out")
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [variant["threshold_from"] for variant in document["variants"]] == ["dev", "eval"]
    assert (document["seeds"], document["title"]) == (2, "IJB-C (made-up files)")
    assert document["peak_megabytes"] > 100
    table = (tmp_path / "out" / "tables" / "beside_the_paper.csv").read_text()
    ours = document["variants"][1]["operating_points"][0]["prr_f1"]["galue"]["value"]
    row = next(line for line in table.splitlines() if line.startswith("GalUE,")).split(",")
    assert [float(row[1]), float(row[4])] == [0.76, ours]
    assert "holue val,0.79" in (tmp_path / "out" / "tables" / "beside_the_paper_2.csv").read_text()
    assert (tmp_path / "out" / "figures" / "rejection_curves_fpir_0.1.png").is_file()
    # The mean over both galleries is what evaluating each of them gives.
    protocols = experiment.load(size)
    each = [
        evaluate(
            protocols(n)[MAIN], fpir=0.1, methods=["galue"], prr="paper", n_resamples=2, seed=n, threshold_from="eval"
        )
        for n in range(2)
    ]
    assert ours == pytest.approx(np.mean([one.points[0].of("galue").prr.value for one in each]), abs=1e-6)


def test_the_command_lists_what_is_missing(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["experiment", "voxblink", "--data", str(tmp_path)])
    assert told.exit_code != 0
    assert isinstance(told.exception, InvalidFileError)
    assert "large/perspk5/gallery: the gallery list of VB-Eval-L-5" in str(told.exception)


@pytest.mark.parametrize("name", ["ijbb", "whale", "voxblink"])
def test_every_data_set_has_a_stand_in_of_its_layout(name: str, tmp_path: Path) -> None:
    if name == "whale":
        part = 0.4  # the protocol draws 5000 animals for development
    else:
        part = 0.006
    write_stand_in(name, tmp_path / name, part=part)
    PAPER_SETS[name].check(Sources(tmp_path / name))
    protocol = find_experiment(name, Sources(tmp_path / name)).load(Size(cache_dir=tmp_path / "cache"))(0)[MAIN]
    assert protocol.evaluation.counts["non_mated_probes"] > 10
    assert set(protocol.evaluation.qualities) >= {"pfe", "scale"}
    with pytest.raises(InvalidFileError, match="exists already"):
        write_stand_in(name, tmp_path / name)


def test_the_papers_table_is_cut_by_data_set() -> None:
    assert printed_prr("VB-Eval-L-5")["galue"] == {"0.01": 0.64, "0.05": 0.89, "0.1": 0.88}
    assert len(PAPER_TABLE_1["SCF"]) == 12


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="needs --data"):
        find_experiment("ijbb")
    with pytest.raises(InvalidParameterError, match="reads HOLUE_DATA"):
        find_experiment("lfw", Sources(Path("x")))
    with pytest.raises(InvalidParameterError, match="voxblink"):
        find_experiment("nothing")
