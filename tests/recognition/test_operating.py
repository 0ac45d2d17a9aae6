import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import (
    CalibrationDataError,
    InvalidConcentrationError,
    InvalidParameterError,
    UnreachableThresholdError,
)
from holue.recognition.model.class_model import Prior
from holue.recognition.model.decision_equation import (
    concentration_from_threshold,
    threshold_from_concentration,
    turning_concentration,
    unknown_prior_from_threshold,
)
from holue.recognition.model.operating_point import Hold, OperatingPoint, threshold_at_fpir

DIMS, SIZES = st.sampled_from([2, 3, 64, 128, 512, 4096]), st.sampled_from([1, 2, 100, 3531, 200_000])


@settings(max_examples=80, deadline=None)
@given(DIMS, SIZES, st.floats(1e-3, 1 - 1e-3), st.floats(0.05, 0.99))
def test_the_larger_concentration_is_found_wherever_one_exists(dim: int, size: int, beta: float, tau: float) -> None:
    turning = turning_concentration(dim, size, Prior.of(beta))
    lowest = threshold_from_concentration(dim, size, turning, beta)
    if tau < lowest:
        with pytest.raises(UnreachableThresholdError, match="lowest reachable"):
            concentration_from_threshold(dim, size, tau, beta)
        return
    kappa = concentration_from_threshold(dim, size, tau, beta)
    assert kappa >= turning * (1 - 1e-9)
    assert threshold_from_concentration(dim, size, kappa, beta) == pytest.approx(tau, abs=1e-9)
    assert threshold_from_concentration(dim, size, kappa * 1.01, beta) > tau - 1e-9  # the rising branch


@settings(max_examples=60, deadline=None)
@given(DIMS, SIZES, st.floats(-0.9, 0.99))
def test_every_threshold_has_an_operating_point(dim: int, size: int, tau: float) -> None:
    point = OperatingPoint.solve(dim=dim, n_subjects=size, threshold=tau)
    again = (point.prior.log_odds + np.log(size) - point.model.height) / point.concentration
    assert again == pytest.approx(tau, abs=1e-9)
    assert point.solved in str(point).replace(" ", "_")


def test_the_lowest_threshold_is_where_the_theory_says() -> None:
    # √(2 ln K / d): 0.18 at d = 512, K = 3531 and 0.41 at d = 128, K = 100 000.
    for dim, size, expected in ((512, 3531, 0.18), (128, 100_000, 0.41)):
        turning = turning_concentration(dim, size, Prior.of(0.5))
        assert threshold_from_concentration(dim, size, turning) == pytest.approx(expected, abs=0.01)


def test_an_unreachable_threshold_moves_the_prior_and_says_so() -> None:
    point = OperatingPoint.solve(dim=512, n_subjects=20_000, threshold=0.15)
    assert point.solved == "unknown_prior"
    assert "no concentration reaches it at unknown prior 0.5 (lowest reachable: 0.19" in point.reason
    beta = unknown_prior_from_threshold(512, 20_000, 0.15, point.concentration)
    assert point.unknown_prior == pytest.approx(beta)
    with pytest.raises(UnreachableThresholdError, match=r"no concentration reaches threshold 0.15 .*lowest reachable"):
        concentration_from_threshold(512, 20_000, 0.15)


def test_concentration_is_continuous_where_the_branch_ends() -> None:
    turning = turning_concentration(512, 1000, Prior.of(0.5))
    lowest = threshold_from_concentration(512, 1000, turning)
    above = OperatingPoint.solve(dim=512, n_subjects=1000, threshold=lowest + 1e-9)
    below = OperatingPoint.solve(dim=512, n_subjects=1000, threshold=lowest - 1e-9)
    assert above.concentration == pytest.approx(below.concentration, rel=1e-2)
    assert below.unknown_prior == pytest.approx(0.5, abs=1e-5)


def test_holding_the_model_moves_the_threshold_with_the_gallery() -> None:
    point = OperatingPoint.solve(dim=512, n_subjects=1000, threshold=0.3)
    grown = point.for_gallery(4000)
    assert grown.threshold - point.threshold == pytest.approx(np.log(4) / point.concentration)
    assert (grown.concentration, grown.prior) == (point.concentration, point.prior)
    assert grown.for_gallery(1000).threshold == pytest.approx(0.3)
    assert "carried over from 1000 subjects" in str(grown)
    assert "carried over" not in str(grown.for_gallery(1000))


def test_holding_the_fpir_follows_the_strangers_themselves() -> None:
    # Strangers whose comparisons spread further than uniform directions in 512 dimensions do (1/√512 = 0.044).
    rng = np.random.default_rng(0)
    best = {size: rng.normal(0.02, 0.07, size=(2000, size)).max(axis=1) for size in (100, 800)}
    point = OperatingPoint.at_fpir(best[100], 0.05, dim=512, n_subjects=100)
    achieved = {
        hold: (best[800] >= point.for_gallery(800, hold).threshold).mean() for hold in ("model", "fpir", "threshold")
    }
    assert achieved["fpir"] == pytest.approx(0.05, abs=0.03)  # a quantile of 2000 strangers, carried eightfold
    assert achieved["fpir"] < achieved["model"] < achieved["threshold"]
    back = point.for_gallery(800, "fpir").for_gallery(100, "fpir")
    assert back.threshold == pytest.approx(point.threshold)
    assert back.concentration == pytest.approx(point.concentration)
    with pytest.raises(InvalidParameterError, match="needs an operating point found on strangers"):
        OperatingPoint.solve(dim=512, n_subjects=100, threshold=0.3).for_gallery(800, "fpir")


def test_holding_the_threshold_solves_the_concentration_again() -> None:
    point = OperatingPoint.solve(dim=512, n_subjects=1000, threshold=0.3)
    grown = point.for_gallery(4000, hold="threshold")
    assert grown.threshold == 0.3
    assert grown.concentration == pytest.approx(concentration_from_threshold(512, 4000, 0.3))
    with pytest.raises(InvalidParameterError, match="hold must be"):
        point.for_gallery(4000, hold="everything")  # type: ignore[arg-type]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.4]), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_at_most_the_target_share_is_accepted_and_exactly_so_without_ties(scores: list[float], target: float) -> None:
    allowed = int(np.floor(target * len(scores) + 1e-9))
    if allowed == 0:
        with pytest.raises(CalibrationDataError, match="finer than"):
            threshold_at_fpir(np.array(scores), target)
        return
    accepted = int((np.array(scores) >= threshold_at_fpir(np.array(scores), target)).sum())
    assert accepted <= allowed
    ordered = sorted(scores, reverse=True)
    if allowed == len(scores) or ordered[allowed - 1] > ordered[allowed]:
        assert accepted == allowed
    distinct = np.arange(len(scores)) / 100
    assert (distinct >= threshold_at_fpir(distinct, target)).sum() == allowed


def test_products_that_round_down_still_accept_the_whole_number() -> None:
    assert 0.29 * 100 < 29
    scores = np.arange(100) / 100
    assert (scores >= threshold_at_fpir(scores, 0.29)).sum() == 29


def test_it_prints_what_was_solved_for_and_why() -> None:
    scores = np.linspace(0.1, 0.4, 200)
    text = str(OperatingPoint.at_fpir(scores, 0.05, dim=512, n_subjects=1000))
    for word in (
        "1000 subjects",
        "threshold 0.38",
        "concentration",
        "unknown prior 0.5",
        "FPIR 0.0500",
        "200 non-mated",
        "target 0.05",
    ):
        assert word in text
    tied = OperatingPoint.at_fpir(np.full(200, 0.4), 0.05, dim=512, n_subjects=1000)
    assert tied.achieved_fpir == 0
    assert "equal scores straddle the threshold" in str(tied)


@pytest.mark.parametrize("target", [0.0, 1.0, -0.1, 2.0, np.nan, True, "0.1"])
def test_targets_outside_the_open_interval_are_refused(target: object) -> None:
    with pytest.raises(InvalidParameterError, match="target_fpir must lie strictly between 0 and 1"):
        threshold_at_fpir(np.arange(10.0), target)  # type: ignore[arg-type]


def test_other_bad_input_is_named() -> None:
    with pytest.raises(CalibrationDataError, match="strangers score 1 against the gallery"):
        threshold_at_fpir(np.ones(50), 0.1)
    with pytest.raises(CalibrationDataError, match="no non-mated validation probes"):
        threshold_at_fpir(np.array([]), 0.1)
    with pytest.raises(CalibrationDataError, match=r"0.001 is finer than 100 .* at least 1000"):
        threshold_at_fpir(np.arange(100.0), 0.001)
    with pytest.raises(InvalidParameterError, match="dim must be"):
        threshold_from_concentration(1, 10, 5.0)
    with pytest.raises(InvalidParameterError, match="n_subjects must be"):
        threshold_from_concentration(8, 0, 5.0)
    with pytest.raises(InvalidConcentrationError, match="concentration must be positive"):
        threshold_from_concentration(8, 10, 0.0)
    with pytest.raises(InvalidParameterError, match="threshold must be a cosine"):
        concentration_from_threshold(8, 10, 1.5)
    with pytest.raises(UnreachableThresholdError, match="lower the threshold"):
        concentration_from_threshold(512, 10, 1.0)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 2_000_000), min_size=1, max_size=6),
    hold=st.sampled_from(["model", "fpir", "threshold"]),
    scale=st.floats(0.02, 0.2),
)
def test_a_point_depends_on_the_calibrated_one_and_the_size_not_on_the_way_there(
    sizes: list[int], hold: Hold, scale: float
) -> None:
    # A wide tail in few dimensions: on the way the threshold may reach 1, or fall below what any concentration gives.
    best = scale * np.random.default_rng(0).normal(size=(400, 50)).max(axis=1)
    point = OperatingPoint.at_fpir(best, 0.05, dim=16, n_subjects=50)
    went = point
    for size in sizes:
        went = went.for_gallery(size, hold)
    assert went == point.for_gallery(sizes[-1], hold)
    assert went.for_gallery(50, hold) == point
