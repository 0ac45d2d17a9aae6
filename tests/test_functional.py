import inspect

import numpy as np
import pytest

import holue
from holue import functional
from holue.errors import (
    HolueError,
    InvalidConcentrationError,
    InvalidEmbeddingsError,
    InvalidInputError,
    InvalidParameterError,
)

UNIT = np.eye(4)


def test_the_public_names_are_pinned() -> None:
    assert set(holue.__all__) == {
        "UNKNOWN",
        "Gallery",
        "HolueError",
        "Identifications",
        "OpenSetRecognizer",
        "OperatingPoint",
        "open",
    }
    for name in holue.__all__:
        assert getattr(holue, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        holue.nothing  # noqa: B018


def test_every_public_function_is_documented_with_an_example_or_formula() -> None:
    for name in functional.__all__:
        thing = getattr(functional, name)
        assert len(inspect.getdoc(thing) or "") > 60, name


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("evidence", ["directions", "gallery", "sharpness", "top_k", "threads", "first_subject"]),
        ("log_normalizer", ["dim", "concentration"]),
        ("mean_resultant_length", ["dim", "concentration"]),
        ("posterior", ["directions", "gallery", "concentration", "unknown_prior", "temperature"]),
        (
            "holistic_terms",
            ["directions", "probe_concentration", "gallery", "concentration", "unknown_prior", "temperature"],
        ),
        ("threshold_from_concentration", ["dim", "n_subjects", "concentration", "unknown_prior"]),
        ("concentration_from_threshold", ["dim", "n_subjects", "threshold", "unknown_prior"]),
        ("unknown_prior_from_threshold", ["dim", "n_subjects", "threshold", "concentration"]),
    ],
)
def test_signatures_are_pinned(name: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(functional, name)).parameters) == parameters


def test_evidence_has_the_stated_shapes() -> None:
    seen = functional.evidence(UNIT[:3], UNIT, [10.0, 0.5], top_k=2)
    assert seen.top_scores.shape == seen.top_index.shape == (3, 2)
    assert seen.log_mass.shape == seen.mean_score.shape == (3, 2)
    assert seen.n_subjects == 4


def test_parts_of_a_gallery_merge_into_the_whole() -> None:
    rng = np.random.default_rng(3)
    gallery = rng.normal(size=(30, 8))
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    whole = functional.evidence(gallery[:4], gallery, [20.0], top_k=40)
    first = functional.evidence(gallery[:4], gallery[:18], [20.0], top_k=40)
    second = functional.evidence(gallery[:4], gallery[18:], [20.0], top_k=40, first_subject=18)
    merged = functional.merge(first, second)
    np.testing.assert_array_equal(merged.top_index, whole.top_index)
    np.testing.assert_allclose(merged.log_mass, whole.log_mass, rtol=1e-12)


def test_bad_input_is_refused_by_every_function() -> None:
    for bad in (
        2 * UNIT,
        np.zeros((2, 4)),
        np.full((2, 4), np.nan),
        UNIT.astype(complex),
        UNIT.astype(object),
        [1.0, 0.0],
    ):
        for call in (
            lambda X: functional.evidence(X, UNIT, [1.0]),
            lambda X: functional.evidence(UNIT, X, [1.0]),
            lambda X: functional.posterior(X, UNIT, 5.0),
            lambda X: functional.holistic_terms(X, 9.0, UNIT, 5.0),
        ):
            with pytest.raises(InvalidEmbeddingsError):
                call(bad)
    with pytest.raises(InvalidEmbeddingsError, match="3 features, the gallery has 4"):
        functional.posterior(np.eye(3), UNIT, 5.0)
    for kappa in (0.0, -1.0, np.inf, np.nan, None, "5"):
        with pytest.raises(InvalidConcentrationError, match="concentration"):
            functional.posterior(UNIT, UNIT, kappa)  # type: ignore[arg-type]
        with pytest.raises(HolueError):
            functional.log_normalizer(4, -1.0)
    with pytest.raises(InvalidParameterError, match="first_subject"):
        functional.evidence(UNIT, UNIT, [1.0], first_subject=1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameterError, match="sharpness must be numbers"):
        functional.evidence(UNIT, UNIT, "x")
    seen = functional.evidence(UNIT, UNIT, [1.0])
    with pytest.raises(InvalidInputError, match="would count twice"):
        functional.merge(seen, seen)
    for kappa_x in (0.0, np.inf, None, [1.0, 2.0]):
        with pytest.raises(InvalidConcentrationError):
            functional.holistic_terms(UNIT, kappa_x, UNIT, 5.0)
    for prior in (0.0, 1.0, np.nan):
        with pytest.raises(InvalidParameterError, match="unknown_prior"):
            functional.posterior(UNIT, UNIT, 5.0, prior)
    with pytest.raises(InvalidParameterError, match="temperature"):
        functional.posterior(UNIT, UNIT, 5.0, temperature=-1)


def test_one_subject_is_enough_for_a_formula() -> None:
    log_p, log_p0 = functional.posterior(UNIT[:1], UNIT[:1], 20.0)
    assert np.exp(log_p[0, 0]) + np.exp(log_p0[0]) == pytest.approx(1)


def test_a_large_gallery_is_exact_in_float32_and_float64() -> None:
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(50_000, 16))
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    probes = gallery[:3]
    exact = np.log(np.exp(300 * (probes @ gallery.T - 1)).sum(1)) + 300
    # float64 to rounding; float32 cosines err by about 1e-7, and 300 multiplies it.
    np.testing.assert_allclose(functional.evidence(probes, gallery, [300.0]).log_mass[:, 0], exact, atol=1e-10)
    low = functional.evidence(probes.astype(np.float32), gallery.astype(np.float32), [300.0])
    np.testing.assert_allclose(low.log_mass[:, 0], exact, atol=300 * 3e-7)
