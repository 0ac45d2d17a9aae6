"""A guarantee is a statement about many worlds: here it is checked in many worlds whose true risk is known."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from holue import UNKNOWN, OpenSetRecognizer
from holue.datasets.simulated import SimulatedSamples, SimulatedWorld, simulate
from holue.errors import CalibrationDataError, InvalidParameterError, InvalidSubjectsError, NotCalibratedError
from holue.recognition.calibration.fingerprint import ReusedProbesWarning
from holue.recognition.risk.betting import BettingTest
from holue.recognition.risk.binomial import BinomialTest, decisions_without_error
from holue.recognition.risk.certificate import CannotCertifyError, RiskCertificate
from holue.recognition.risk.controller import DependentProbesWarning, RiskController
from holue.recognition.risk.decisions import RISKS, Decisions, risk_columns
from holue.recognition.risk.error_curve import ErrorCurve
from holue.recognition.risk.expected_risk import ExpectedRiskController, expected_risk_threshold
from holue.recognition.risk.fixed_sequence import units_tolerating, walk
from holue.recognition.risk.units_needed import UnitsNeeded, units_needed

LEVELS = np.linspace(0, 1, 201)  # quantiles of a uniform quality, known beforehand
FINE = (np.arange(20000) + 0.5) / 20000


def most(allowed: float, worlds: int) -> float:
    """The largest share of violations that is still compatible with ``allowed``: three standard errors above it."""
    return allowed + 3 * np.sqrt(allowed * (1 - allowed) / worlds)


def rising(q: np.ndarray) -> np.ndarray:
    return 0.6 * (1 - q) ** 2


def bumpy(q: np.ndarray) -> np.ndarray:
    """Not monotone: the risk of looser thresholds rises above the target and falls under it again."""
    return np.where(q > 0.8, 0.02, np.where(q > 0.55, 0.25, 0.02))


def true_risk(error: Callable[[np.ndarray], np.ndarray], threshold: float) -> float:
    return float(error(FINE[threshold <= FINE]).mean())


def clustered(
    rng: np.random.Generator, error: Callable[[np.ndarray], np.ndarray], subjects: int, each: int, together: float
) -> Decisions:
    """A share ``together`` of the subjects has probes that are all alike; the others have independent ones."""
    unit = np.repeat(np.arange(subjects), each)
    alike = (rng.random(subjects) < together)[unit]
    quality = np.where(alike, rng.random(subjects)[unit], rng.random(len(unit)))
    luck = np.where(alike, rng.random(subjects)[unit], rng.random(len(unit)))
    return Decisions(quality, luck < error(quality), unit)


# -- the guarantee, in worlds that are a law of quality and error ------------------------------------------------------


@pytest.mark.parametrize("error", [rising, bumpy])
def test_the_risk_exceeds_its_target_in_no_more_worlds_than_allowed(error: Callable[..., np.ndarray]) -> None:
    rng, worlds, target, confidence = np.random.default_rng(0), 400, 0.1, 0.9
    violated = certified = 0
    for _ in range(worlds):
        quality = rng.random(400)
        found = walk(
            Decisions(quality, rng.random(400) < error(quality), np.arange(400)), LEVELS, target, confidence
        ).certified
        if found is not None:
            certified += 1
            violated += true_risk(error, found) > target
    assert certified > 0.5 * worlds  # a guarantee that is never given would be kept too
    assert 0 < violated / worlds <= most(1 - confidence, worlds)


@pytest.mark.parametrize("together", [0.0, 1.0])
def test_the_subject_level_guarantee_holds_however_a_subjects_probes_hang_together(together: float) -> None:
    rng, worlds, target, confidence = np.random.default_rng(1), 80, 0.1, 0.9
    violated = by_probe = 0
    for _ in range(worlds):
        drawn = clustered(rng, rising, 120, 6, together)
        found = walk(drawn, LEVELS, target, confidence).certified
        violated += found is not None and true_risk(rising, found) > target
        naive = walk(Decisions(drawn.quality, drawn.wrong, np.arange(len(drawn))), LEVELS, target, confidence).certified
        by_probe += naive is not None and true_risk(rising, naive) > target
    assert violated / worlds <= most(1 - confidence, worlds)
    if together == 1.0:
        assert by_probe / worlds > most(1 - confidence, worlds)  # and this is why there is a subject level


def test_with_more_data_the_threshold_nears_the_loosest_that_is_right() -> None:
    rng, target = np.random.default_rng(2), 0.1
    loosest = 1 - np.sqrt(3 * target / 0.6)  # R(t) = 0.2 (1 − t)²
    kept = {}
    for n in (500, 20000):
        found = []
        for _ in range(10):
            quality = rng.random(n)
            decisions = Decisions(quality, rng.random(n) < rising(quality), np.arange(n))
            certified = walk(decisions, LEVELS, target, 0.9).certified
            found.append(0.0 if certified is None else 1 - certified)
        kept[n] = np.mean(found) / (1 - loosest)
    assert kept[500] > 0.7
    assert 0.95 < kept[20000] < 1.02


def test_nothing_is_filtered_where_everything_is_good() -> None:
    quality = np.random.default_rng(3).random(400)
    decisions = Decisions(quality, np.zeros(400, dtype=bool), np.arange(400))
    assert walk(decisions, LEVELS, 0.01, 0.95).certified == -np.inf


@pytest.mark.parametrize("together", [0.0, 1.0])
def test_the_expected_risk_is_kept_on_average_and_not_by_much_too_little(together: float) -> None:
    rng, worlds, target, losses = np.random.default_rng(4), 400, 0.05, []
    for _ in range(worlds):
        t = expected_risk_threshold(clustered(rng, rising, 60, 4, together), target)
        losses.append(0.2 * (1 - max(t, 0.0)) ** 3)  # P(q ≥ t and wrong) = ∫_t^1 0.6 (1 − q)² dq
    spread = np.std(losses) / np.sqrt(worlds)
    assert target - 1 / 61 - 3 * spread <= np.mean(losses) <= target + 3 * spread


# -- the tests behind it -----------------------------------------------------------------------------------------------


def test_binomial_tails_are_exact() -> None:
    for n, k, target in ((10, 0, 0.3), (50, 7, 0.2), (1000, 3, 0.01)):
        wrong = np.zeros(n)
        wrong[:k] = 1
        assert BinomialTest.p_value(np.ones(n), wrong, target) == pytest.approx(binom.cdf(k, n, target), rel=1e-9)
        upper = BinomialTest.upper_bound(np.ones(n), wrong, 0.95)
        assert binom.cdf(k, n, upper) == pytest.approx(0.05, rel=1e-6)
    assert BinomialTest.p_value(np.zeros(5), np.zeros(5), 0.1) == 1
    assert BinomialTest.upper_bound(np.zeros(5), np.zeros(5), 0.9) == 1


def test_bets_against_a_risk_above_the_target_do_not_win_more_often_than_they_may() -> None:
    rng, worlds, target, delta = np.random.default_rng(5), 2000, 0.1, 0.1
    won = 0
    for _ in range(worlds):
        share = rng.choice(
            [0.0, 0.25, 1.0], p=[0.84, 0.08, 0.08], size=80
        )  # mean exactly 0.1: the edge of the hypothesis
        won += BettingTest.p_value(np.ones(80), share, target) <= delta
    assert won / worlds <= most(delta, worlds)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40), st.floats(0.01, 0.4))
def test_p_values_fall_with_the_target_and_bounds_are_where_they_cross(
    counts: list[tuple[int, int]], target: float
) -> None:
    decided = np.array([d for d, _ in counts]) / 4
    wrong = np.array([min(d, w) for d, w in counts]) / 4
    for test, n, k in ((BettingTest, decided, wrong), (BinomialTest, np.ceil(decided), np.floor(wrong))):
        assert test.p_value(n, k, target) >= test.p_value(n, k, min(2 * target, 0.9)) - 1e-12
        bound = test.upper_bound(n, k, 0.9)
        assert test.p_value(n, k, bound - 1e-6 if bound > 1e-5 else 1e-9) >= 0.1 - 1e-3
        assert bound == 1 or test.p_value(n, k, bound) <= 0.1 + 1e-6


def test_how_many_decisions_without_an_error_are_needed() -> None:
    assert decisions_without_error(0.01, 0.95) == units_tolerating(BinomialTest, 0, 0.01, 0.95) == 299
    assert units_tolerating(BettingTest, 0, 0.01, 0.95) < 1.3 * 299


def test_each_risk_counts_what_it_says() -> None:
    #                  right  FA     FR     MI     TN
    mated = np.array([True, False, True, True, False])
    accepted = np.array([True, True, False, True, False])
    correct = np.array([True, False, False, False, False])
    kinds = {name: risk_columns(name, mated, accepted, correct) for name in RISKS}
    assert {name: wrong.astype(int).tolist() for name, (_, wrong) in kinds.items()} == {
        "error": [0, 1, 1, 1, 0],
        "false-acceptance": [0, 1, 0, 0, 0],
        "misidentification": [0, 0, 0, 1, 0],
        "false-rejection": [0, 0, 1, 0, 0],
        "fpir": [0, 1, 0, 0, 0],
        "fnir": [0, 0, 1, 1, 0],
    }
    assert {name: int(counted.sum()) for name, (counted, _) in kinds.items() if not counted.all()} == {
        "fpir": 2,
        "fnir": 3,
    }


# -- with a recogniser -------------------------------------------------------------------------------------------------


def parts(probes: SimulatedSamples) -> tuple[np.ndarray, np.ndarray]:
    """Probes of every other person: one half calibrates, the other controls the risk."""
    first = probes.person % 2 == 0
    return first, ~first


def halves(world: SimulatedWorld, method: str = "galue", **options: object) -> tuple[OpenSetRecognizer, np.ndarray]:
    first, second = parts(world.probes)
    recognizer = OpenSetRecognizer(method, threads=1, **options)  # type: ignore[arg-type]
    recognizer.fit(world.gallery.X, world.gallery.y)
    return recognizer.calibrate(world.probes.X[first], world.probes.person[first]), second


def control(
    recognizer: OpenSetRecognizer, world: SimulatedWorld, rows: np.ndarray, **options: object
) -> RiskCertificate:
    controller = RiskController(**{"target_level": 0.1, "unit": "subject", **options})  # type: ignore[arg-type]
    return controller.fit(recognizer, world.probes.X[rows], world.probes.person[rows]).certificate_


@pytest.fixture(scope="module")
def crowd() -> SimulatedWorld:
    return simulate(n_subjects=150, n_strangers=150, dim=32, concentration=60.0, rng=np.random.default_rng(11))


def test_in_whole_simulated_worlds_the_guarantee_holds() -> None:
    target, confidence, worlds, violated, certified = 0.1, 0.9, 12, 0, 0
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        # Many probes a person: some for either half, the rest are the future whose risk is measured.
        world = simulate(
            n_subjects=120,
            n_strangers=120,
            dim=32,
            concentration=70.0,
            probes_per_person=10,
            look_alike_pairs=5,
            rng=rng,
        )
        turn = np.tile(np.arange(10), 240)
        X, person = world.probes.X, world.probes.person
        recognizer = OpenSetRecognizer("galue", threads=1).fit(world.gallery.X, world.gallery.y)
        recognizer.calibrate(X[turn < 2], person[turn < 2])
        try:
            RiskController(target_level=target, confidence_level=confidence, unit="subject").fit(
                recognizer, X[(turn >= 2) & (turn < 5)], person[(turn >= 2) & (turn < 5)]
            )
        except CannotCertifyError:
            continue
        certified += 1
        later = turn >= 5
        answers = recognizer.identify(X[later])
        wrong = answers.subject != world.probes.y[later]
        violated += wrong[~answers.filtered].mean() > target
    assert certified >= worlds / 2
    assert violated / worlds <= most(1 - confidence, worlds)


def test_identify_answers_three_ways_and_predict_two(crowd: SimulatedWorld, tmp_path) -> None:  # type: ignore[no-untyped-def]
    recognizer, second = halves(crowd)
    X = crowd.probes.X
    before = recognizer.identify(X)
    assert not before.filtered.any()
    certificate = control(recognizer, crowd, second, target_level=0.12)
    answers = recognizer.identify(X)
    filtered = answers.quality < certificate.filter_below
    assert 0 < filtered.sum() < len(X)
    np.testing.assert_array_equal(answers.filtered, filtered)
    np.testing.assert_array_equal(answers.decision[~filtered], before.decision[~filtered])
    assert set(answers.decision) == {"accepted", "rejected", "filtered"}
    assert (answers.accepted.astype(int) + answers.rejected + answers.filtered == 1).all()
    assert all(subject is None for subject in answers.subject[filtered])
    assert all(subject is UNKNOWN for subject in answers.subject[answers.rejected])
    np.testing.assert_array_equal(answers.candidate_subjects, before.candidate_subjects)
    np.testing.assert_array_equal(recognizer.predict(X), before.subject)
    assert np.mean(answers.filtered[second]) == pytest.approx(certificate.filtered_share)
    recognizer.save(tmp_path / "saved")
    again = OpenSetRecognizer.load(tmp_path / "saved")
    assert again.certificate_ == certificate
    np.testing.assert_array_equal(again.identify(X).decision, answers.decision)
    with pytest.raises(CalibrationDataError, match="calibrated this recogniser"):
        control(again, crowd, ~second)
    recognizer.calibrate(X, crowd.probes.person)
    assert not recognizer.identify(X).filtered.any()  # another quality: the certificate is void


def test_a_threshold_can_be_set_by_hand(crowd: SimulatedWorld) -> None:
    recognizer, second = halves(crowd, filter_below=0.9)
    answers = recognizer.identify(crowd.probes.X)
    np.testing.assert_array_equal(answers.filtered, answers.quality < 0.9)
    with pytest.raises(InvalidParameterError, match=r"filter_below=0\.9 set by hand"):
        control(recognizer, crowd, second)
    with pytest.raises(InvalidParameterError, match="filter_below must be"):
        OpenSetRecognizer("galue", filter_below=np.nan).fit(crowd.gallery.X, crowd.gallery.y)


@pytest.mark.parametrize("risk", RISKS)
def test_every_risk_can_be_controlled(risk: str, crowd: SimulatedWorld) -> None:
    recognizer, second = halves(crowd)
    certificate = control(recognizer, crowd, second, risk=risk, target_level=0.25)
    assert certificate.observed_risk <= 0.25
    answers, truth = recognizer.identify(crowd.probes.X[second]), crowd.probes.y[second]
    mated = truth != UNKNOWN
    wrong = {
        "error": answers.subject != truth,
        "false-acceptance": ~mated & answers.accepted,
        "misidentification": mated & answers.accepted & (answers.subject != truth),
        "false-rejection": mated & answers.rejected,
        "fpir": ~mated & answers.accepted,
        "fnir": mated & (answers.subject != truth),
    }[risk]
    counted = ~answers.filtered & {"fpir": ~mated, "fnir": mated}.get(risk, True)
    assert (certificate.n_wrong, certificate.n_decided) == (int((wrong & counted).sum()), int(counted.sum()))
    assert RiskCertificate.from_dict(certificate.to_dict()) == certificate
    assert f"risk '{risk}'" in str(certificate)
    assert "betting on subjects" in str(certificate)


def test_the_certificate_says_which_test_was_used(crowd: SimulatedWorld) -> None:
    recognizer, second = halves(crowd)
    with pytest.warns(DependentProbesWarning, match="600 development probes show 150 people"):
        by_probe = control(recognizer, crowd, second, unit="probe")
    assert (by_probe.unit, by_probe.test, by_probe.n_units) == ("probe", "exact binomial tail", 600)
    one_each = second & (np.arange(len(second)) % 4 == 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        single = control(recognizer, crowd, one_each, target_level=0.3)
    assert (single.unit, single.test) == ("subject", "exact binomial tail")


def test_the_expected_risk_needs_fewer_probes_and_says_what_it_promises(crowd: SimulatedWorld) -> None:
    recognizer, second = halves(crowd)
    X, person = crowd.probes.X[second], crowd.probes.person[second]
    controller = ExpectedRiskController(target_level=0.02, unit="subject").fit(recognizer, X, person)
    assert "in expectation, at most 0.02" in str(controller.certificate_)
    assert controller.certificate_.confidence_level is None
    assert recognizer.identify(X).filtered.any()
    with pytest.raises(CannotCertifyError, match="it takes at least 999, 849 more") as refused:
        ExpectedRiskController(target_level=0.001, unit="subject").fit(recognizer, X, person)
    assert refused.value.more_probes == 849


# -- what cannot be done is said ---------------------------------------------------------------------------------------


def test_a_target_too_fine_for_the_set_is_refused_with_what_it_would_take(crowd: SimulatedWorld) -> None:
    recognizer, second = halves(crowd)
    with pytest.raises(
        CannotCertifyError, match=r"cannot certify risk 'error'.*at most 0\.001.*150 subjects"
    ) as refused:
        control(recognizer, crowd, second, target_level=0.001)
    assert refused.value.needed_without_error == units_tolerating(BettingTest, 0, 0.001, 0.95)
    assert refused.value.needed_probes is None or refused.value.needed_probes > 600
    assert not hasattr(recognizer, "certificate_")
    assert not recognizer.identify(crowd.probes.X).filtered.any()


@pytest.mark.parametrize("target", [0.001, 0.005, 0.01])
def test_a_refusal_says_in_plain_words_how_many_probes_are_needed(crowd: SimulatedWorld, target: float) -> None:
    recognizer, second = halves(crowd)
    with pytest.raises(CannotCertifyError) as refused:
        control(recognizer, crowd, second, target_level=target)
    error, said = refused.value, str(refused.value)
    low, high = error.needed_range
    if low is None:
        assert "no number would do; raise target_level" in said
    elif error.needed_probes is None:
        assert (
            "no number of development probes like these is likely to be enough (with probability 0.8 it takes" in said
        )
    else:
        needed = (
            f"you need about {error.needed_probes} development probes like these, {error.more_probes} more than now ("
        )
        assert f"{needed}with probability 0.8 it takes {low}" in said
        assert (f" to {high}); bring them" in said) == (high is not None)


def people_with_four_probes(rng: np.random.Generator, n: int) -> Decisions:
    """People of different difficulty, whose four probes fail together more than those of two people."""
    difficulty = np.repeat(rng.beta(0.5, 6, size=n), 4)
    quality = rng.random(4 * n)
    wrong = rng.random(4 * n) < np.minimum(1.0, 2 * difficulty * (1 - quality) ** 2)
    return Decisions(quality, wrong, np.repeat(np.arange(n), 4))


def test_as_many_probes_as_it_asks_for_are_enough_in_four_of_five_cases() -> None:
    rng = np.random.default_rng(6)

    def draw(n: int) -> Decisions:
        return Decisions(rng.random(n), rng.random(n) < 0.001, np.arange(n))

    needed = [units_needed(draw(250), LEVELS, 0.01, 0.95).units for _ in range(11)]
    middle = int(np.median([np.inf if n is None else n for n in needed]))
    assert 299 < middle < 5000
    # 80 %, less two standard deviations of 40 draws; the estimate itself is of a set in which one error more or less is luck.
    assert sum(walk(draw(middle), LEVELS, 0.01, 0.95).certified is not None for _ in range(40)) >= 27


def test_what_a_refusal_asks_for_is_right_steady_and_falls_with_the_target() -> None:
    asked, held = [], 0
    for seed in range(12):
        decisions = people_with_four_probes(np.random.default_rng(seed), 400)
        found = [
            units_needed(decisions, LEVELS, target, 0.95) for target in ((0.01, 0.02, 0.03) if seed < 2 else (0.02,))
        ]
        needed = [each.units for each in found]
        assert None not in needed
        assert needed == sorted(needed, reverse=True), "a looser target never needs more people"
        at = found[len(found) // 2]
        asked.append(at.units)
        # Of 1400 such people four of five sets are certified at 0.02, give or take 10 % (60 draws at each size).
        held += at.low * 0.9 <= 1400 <= at.high * 1.1
    assert 1100 < np.median(asked) < 1700
    # About 90 errors, and the rate is known to a tenth of itself: the middle four fifths of such sets span a factor of two.
    low, high = np.quantile(asked, [0.1, 0.9])
    assert high < 2.5 * low
    assert held >= 8, "the range holds the right number in four of five sets (8 of 12: two standard deviations less)"
    assert units_needed(decisions, LEVELS, 0.02, 0.95) == at, "the same set has the same answer"


def test_a_set_without_an_error_is_given_a_range_that_is_wide() -> None:
    decisions = Decisions(np.random.default_rng(0).random(250), np.zeros(250, dtype=bool), np.arange(250))
    found = units_needed(decisions, LEVELS, 0.01, 0.95)
    assert found.low is not None
    assert units_tolerating(BinomialTest, 0, 0.01, 0.95) <= found.low < 400
    assert found.units is not None
    assert found.high is None or found.high > 2 * found.low


def test_the_curve_of_errors_uses_all_errors_and_knows_that_probes_of_a_person_fail_together() -> None:
    rng = np.random.default_rng(3)
    alone = people_with_four_probes(rng, 3000)
    curve = ErrorCurve.of(alone, LEVELS)
    # The rate is 2·(1/13)·u² on average, within four standard errors (and odds are a little steeper than rates).
    assert abs(curve.steepness - 2.2) < 4 * np.sqrt(curve.covariance[1, 1])
    clear = alone.quality > 0.5
    # Some 70 errors among the clear half, a third more of them in the eyes of people who fail together: 13 %, twice.
    assert curve.rates()[clear].mean() == pytest.approx(2 / 13 * 0.5**2 / 3, rel=0.26)
    assert 0.02 < curve.together < 0.3
    together = Decisions(
        np.repeat(rng.random(500), 4), np.repeat(rng.random(500) < 0.1, 4), np.repeat(np.arange(500), 4)
    )
    assert ErrorCurve.of(together, LEVELS).together > 0.9
    apart = Decisions(rng.random(2000), rng.random(2000) < 0.1, np.repeat(np.arange(500), 4))
    assert ErrorCurve.of(apart, LEVELS).together < 0.1
    drawn = [ErrorCurve.of(together, LEVELS).draw(together, np.random.default_rng(seed)) for seed in range(20)]
    assert np.mean(drawn) == pytest.approx(0.1, abs=0.03)
    same = np.array(drawn).reshape(-1, 4)
    assert np.mean(same.any(axis=1) & ~same.all(axis=1)) < 0.05


def test_no_number_of_probes_makes_a_bad_quality_good() -> None:
    rng = np.random.default_rng(7)
    decisions = Decisions(rng.random(500), rng.random(500) < 0.3, np.arange(500))
    assert walk(decisions, LEVELS, 0.05, 0.95).certified is None
    assert units_needed(decisions, LEVELS, 0.05, 0.95) == UnitsNeeded(None, None, None)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"target_level": 0.0}, "target_level must lie strictly between 0 and 1"),
        ({"target_level": 1.5}, "target_level must lie strictly between 0 and 1"),
        ({"confidence_level": 1.0}, "confidence_level must lie strictly between 0 and 1"),
        ({"risk": "regret"}, "risk must be one of error"),
        ({"unit": "family"}, "unit must be 'probe' or 'subject'"),
    ],
)
def test_bad_settings_are_named(options: dict[str, object], says: str, crowd: SimulatedWorld) -> None:
    recognizer, second = halves(crowd)
    with pytest.raises(InvalidParameterError, match=says):
        control(recognizer, crowd, second, **options)


def test_bad_development_sets_are_named(crowd: SimulatedWorld) -> None:
    recognizer, second = halves(crowd)
    X, y, person = crowd.probes.X, crowd.probes.y, crowd.probes.person
    with pytest.raises(CalibrationDataError, match="600 of the 1200 development probes calibrated"):
        control(recognizer, crowd, second | ~second)
    one_copy = second.copy()
    one_copy[np.flatnonzero(~second)[0]] = True
    with pytest.warns(ReusedProbesWarning, match="1 of the 601 development probes are copies"):
        assert control(recognizer, crowd, one_copy, target_level=0.2).n_probes == 600
    with pytest.raises(InvalidSubjectsError, match="y calls some UNKNOWN"):
        RiskController(unit="subject").fit(recognizer, X[second], y[second])
    RiskController(target_level=0.2, unit="subject").fit(recognizer, X[second], y[second], subject=person[second])
    mated = second & (y != UNKNOWN)
    with pytest.raises(CalibrationDataError, match="counts non-mated probes, and none"):
        control(recognizer, crowd, mated, risk="fpir")
    never = OpenSetRecognizer("galue", threshold=0.5).fit(crowd.gallery.X, crowd.gallery.y)
    with pytest.raises(NotCalibratedError, match="never calibrated"):
        control(never, crowd, second)


def test_what_few_units_need_is_found_to_the_unit() -> None:
    rng = np.random.default_rng(0)
    for n in (10, 14, 25, 40):
        decisions = Decisions(rng.random(n), np.zeros(n, dtype=bool), np.arange(n))
        needed = units_needed(decisions, LEVELS, 0.05, 0.95)
        assert needed.units is not None
        assert needed.units > n
