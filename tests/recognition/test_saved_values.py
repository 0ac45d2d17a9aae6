"""A saved recogniser whose files are signed but whose values break a rule is refused."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holue import UNKNOWN, OpenSetRecognizer
from holue.artifact.artifact import content_digest
from holue.errors import ArtifactError, CorruptArtifactError
from holue.recognition.risk.controller import RiskController

Edit = Callable[[Path], None]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with all that a recogniser can learn."""
    rng = np.random.default_rng(0)
    means = rng.normal(size=(240, 24))
    noisy = lambda rows, noise: means[rows] + noise * rng.normal(size=(len(rows), 24))  # noqa: E731
    rows = np.repeat(np.arange(240), 6)
    labels = np.array([int(row) if row < 120 else UNKNOWN for row in rows], dtype=object)
    kappa = rng.uniform(50, 150, len(rows))
    first = np.arange(len(rows)) % 6 < 3
    made = OpenSetRecognizer("holue-plus").fit(noisy(np.arange(120), 0.1), np.arange(120), concentration=100.0)
    X = noisy(rows, 0.9)
    made.calibrate(X[first], labels[first], concentration=kappa[first])
    made.calibrate_sets(X[~first], labels[~first])
    RiskController(target_level=0.4).fit(made, X[~first], labels[~first], concentration=kappa[~first])
    path = tmp_path_factory.mktemp("values") / "saved"
    made.save(path)
    return path


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    path = tmp_path / "saved"
    OpenSetRecognizer.load(saved).save(path)
    return path


def sign(directory: Path, change: Callable[[dict[str, Any]], None] = lambda manifest: None) -> None:
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["digest"]
    change(manifest)
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((directory / name).read_bytes()).hexdigest()
    path.write_text(json.dumps(manifest | {"digest": content_digest(manifest)}))


def array(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Edit:
    def edit(directory: Path) -> None:
        path = directory / f"{name}.npy"
        np.save(path, change(np.load(path)))
        sign(directory)

    return edit


def value(*keys: str, to: object) -> Edit:
    def edit(directory: Path) -> None:
        def change(manifest: dict[str, Any]) -> None:
            place = manifest["content"]
            for key in keys[:-1]:
                place = place[key]
            assert keys[-1] in place
            place[keys[-1]] = to

        sign(directory, change)

    return edit


def entry(at: Any, to: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(given: np.ndarray) -> np.ndarray:
        given[at] = to
        return given

    return change


NUMBERS = {
    "directions": (np.nan, np.inf, 7.0),
    "concentrations": (np.nan, np.inf, 0.0, -3.0),
    "conformal_mated": (np.nan, np.inf, 5.0),
    "conformal_unknown": (np.nan, -np.inf, 5.0),
    "quality_levels": (np.nan, np.inf),
    "quality_typical_causes": (np.nan, np.inf),
    "quality_typical_share": (np.nan, np.inf),
    "quality_sharpness": (np.nan, np.inf, 0.0, -3.0),
    "quality_enrolled_2_knots_0": (np.nan, np.inf),
    "quality_enrolled_2_weights": (np.nan, np.inf),
    "quality_enrolled_3_knots_2": (np.nan, np.inf),
    "quality_enrolled_3_weights": (np.nan, -np.inf),
}
POINT, CERTIFICATE = "operating_point", "certificate"
EDITS: dict[str, Edit] = {
    **{f"{name} {to}": array(name, entry((0,) * 1, to)) for name, values in NUMBERS.items() for to in values},
    "a last row of NaN": array("directions", entry((-1, -1), np.nan)),
    "rows times 7": array("directions", lambda x: 7 * x),
    "one row times 7": array("directions", entry(3, 7 * np.eye(24)[0])),
    "a row of zeros": array("directions", entry(3, 0.0)),
    "a row less": array("directions", lambda x: x[1:]),
    "a column less": array("directions", lambda x: x[:, 1:] / np.linalg.norm(x[:, 1:], axis=1, keepdims=True)),
    "a third axis": array("directions", lambda x: x[:, :, None]),
    "float16 rows": array("directions", lambda x: x.astype(np.float16)),
    "complex rows": array("directions", lambda x: x.astype(complex)),
    "integer rows": array("directions", lambda x: x.astype(np.int64)),
    "text rows": array("directions", lambda x: x.astype(str)),
    "no rows": array("directions", lambda x: x[:0]),
    "a duplicate id": array("subjects", entry(1, 0)),
    "an id less": array("subjects", lambda y: y[1:]),
    "ids as floats": array("subjects", lambda y: y.astype(float)),
    "an empty id": array("subjects", lambda y: np.array(["", *map(str, y[1:])])),
    "ids in two columns": array("subjects", lambda y: np.stack([y, y], axis=1)),
    "a concentration less": array("concentrations", lambda k: k[1:]),
    "one concentration": array("concentrations", lambda k: k[0]),
    "concentrations as text": array("concentrations", lambda k: k.astype(str)),
    "knots that fall": array("quality_enrolled_3_knots_0", lambda k: k[::-1]),
    "a knot less": array("quality_enrolled_3_knots_1", lambda k: k[1:]),
    "negated weights": array("quality_enrolled_2_weights", lambda w: -np.abs(w) - 1),
    "a weight less": array("quality_enrolled_3_weights", lambda w: w[1:]),
    "typical of one branch": array("quality_typical_causes", lambda t: t[:1]),
    "typical of one cause": array("quality_typical_causes", lambda t: t[:, :1]),
    "levels that fall": array("quality_levels", lambda q: q[::-1]),
    "levels in a matrix": array("quality_levels", lambda q: q[None]),
    "fingerprints as floats": array("calibration_fingerprints", lambda f: f.astype(float)),
    "a person less": array("conformal_mated_person", lambda p: p[1:]),
    "people as floats": array("conformal_unknown_person", lambda p: p.astype(float)),
    **{
        f"{keys[-1]} of {'.'.join(keys[:-1])} {to!r}": value(*keys, to=to)
        for keys, values in {
            ("gallery_version",): (0, -1, True, 1.5, "1", None),
            ("quality",): (None, "yes"),
            ("embedding_model",): (3, ["x"]),
            ("parameters",): (None, {"threshold": 7.0}, {"method": "none"}, {"extra": 1}),
            ("parameters", "temperature"): (0, -1, "20", 1e999),
            ("parameters", "target_fpir"): (0, 1, -0.1, "0.1"),
            ("parameters", "unknown_prior"): (0, 1),
            ("parameters", "filter_below"): ("x", True),
            ("parameters", "hold"): ("x",),
            ("parameters", "search"): ("x",),
            ("parameters", "random_state"): (-1, 1.5, "x"),
            (POINT,): (3, {}, []),
            (POINT, "dim"): (1, 23, 24.5, True),
            (POINT, "n_subjects"): (0, 1, 119, 10**13),
            (POINT, "threshold"): (float("nan"), 7.0, -0.3, 0.9, "0.3", None, True),
            (POINT, "concentration"): (0, -4.0, 1e300, None, 7.0),
            (POINT, "prior"): (None, {}, {"log_odds": None}, {"log_odds": 40.0}, {"log_odds": float("nan")}),
            (POINT, "solved"): ("x", None),
            (POINT, "reason"): (3,),
            (POINT, "target_fpir"): (0, 1, -1, "x"),
            (POINT, "achieved_fpir"): (-0.1, 1.1, "x"),
            (POINT, "n_nonmated"): (-1, 1.5, None),
            (POINT, "calibrated"): ({}, 3, "x"),
            (POINT, "tail"): ({}, {"mean": "x", "deviation": 1.0}, {"mean": 0.0, "deviation": 0.0}),
            (CERTIFICATE,): ({}, 3),
            (CERTIFICATE, "risk"): ("x", None),
            (CERTIFICATE, "target_level"): (0, 2, float("nan")),
            (CERTIFICATE, "confidence_level"): (0, 2),
            (CERTIFICATE, "unit"): ("x",),
            (CERTIFICATE, "test"): (3,),
            (CERTIFICATE, "filter_below"): ("x", float("nan"), 1e999),
            (CERTIFICATE, "filtered_share"): (-0.1, 1.1),
            (CERTIFICATE, "n_wrong"): (-1, 10**6),
            (CERTIFICATE, "n_decided"): (-1, 10**6),
            (CERTIFICATE, "n_probes"): (-1, 0),
            (CERTIFICATE, "n_units"): (-1, None),
            (CERTIFICATE, "n_gallery"): (0, "x"),
        }.items()
        for to in values
    },
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edit_with_valid_checksums_is_refused(copy: Path, edit: Edit) -> None:
    edit(copy)
    with pytest.raises(ArtifactError):
        OpenSetRecognizer.load(copy)


@pytest.mark.parametrize("name", ["subjects", "directions", "quality_typical_causes", "quality_enrolled_3_knots_1",
                                  "quality_enrolled_2_weights", "conformal_mated", "conformal_unknown_person"])  # fmt: skip
def test_a_part_that_is_gone_is_missed(copy: Path, name: str) -> None:
    (copy / f"{name}.npy").unlink()

    def change(manifest: dict[str, Any]) -> None:
        del manifest["files"][f"{name}.npy"]

    sign(copy, change)
    with pytest.raises(CorruptArtifactError):
        OpenSetRecognizer.load(copy)


def test_without_an_edit_it_loads_with_the_same_answers(saved: Path, copy: Path) -> None:
    sign(copy)
    probes = np.random.default_rng(1).normal(size=(50, 24))
    first, second = (OpenSetRecognizer.load(path).identify(probes, concentration=80.0) for path in (saved, copy))
    np.testing.assert_array_equal(first.uncertainty, second.uncertainty)
