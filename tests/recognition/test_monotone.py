from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from holue.errors import NotCalibratedError
from holue.recognition.quality.heads.monotone import MonotoneHead
from holue.recognition.quality.heads.shifted import ShiftedHead


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
def test_it_rises_with_every_feature_whatever_it_was_fitted_on(seed: int, m: int, rounded: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(120, m)).round(0 if rounded else 9)  # rounded features tie at the knots
    head = MonotoneHead()
    head.fit(x, rng.random(120) < rng.random())
    points = rng.normal(size=(40, m)) * 2
    above = points + rng.exponential(size=(40, m)) * (rng.random((40, m)) < 0.5)
    assert (head(above) >= head(points) - 1e-12).all()
    assert ((head(points) > 0) & (head(points) < 1)).all()


def test_probabilities_are_calibrated_on_a_monotone_truth() -> None:
    rng = np.random.default_rng(0)
    truth = lambda x: 1 / (1 + np.exp(-(1 + 2 * np.minimum(x[:, 0], x[:, 1]))))  # noqa: E731
    x = rng.normal(size=(4000, 2))
    head = MonotoneHead()
    head.fit(x, rng.random(4000) < truth(x))
    fresh = rng.normal(size=(2000, 2))
    # 4000 answers in some tens of cells leave a few hundredths of noise.
    assert np.abs(head(fresh) - truth(fresh)).mean() < 0.03


def test_all_right_answers_leave_a_modest_certainty() -> None:
    x = np.random.default_rng(1).normal(size=(50, 2))
    head = MonotoneHead()
    head.fit(x, np.ones(50, dtype=bool))
    assert (head(x) > 0.9).all()
    assert (head(x) < 0.9999).all()


def test_the_gradient_is_that_of_the_loss_at_the_optimum() -> None:
    rng = np.random.default_rng(2)
    x, correct = rng.normal(size=(300, 2)), rng.random(300) < 0.7
    head = MonotoneHead()
    head.fit(x, correct)
    # The intercept is free: at the optimum the predictions balance, up to one pseudo-answer of each kind.
    assert head(x).sum() == pytest.approx(correct.sum(), abs=1.5)


def test_it_must_be_fitted_and_can_be_restored() -> None:
    x = np.random.default_rng(3).normal(size=(60, 2))
    head, other = MonotoneHead(), MonotoneHead()
    with pytest.raises(NotCalibratedError, match="calibrate first"):
        head(x)
    head.fit(x, x[:, 0] > 0)
    other.restore(head.state("a"), "a")
    np.testing.assert_array_equal(head(x), other(x))


def test_a_weight_that_the_optimiser_rounds_below_its_bound_is_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounding(*args: Any, **options: Any) -> Any:
        found = minimize(*args, **options)
        found.x[1:] -= 1e-17
        return found

    monkeypatch.setattr("holue.recognition.quality.heads.monotone.minimize", rounding)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    head, again = MonotoneHead(), MonotoneHead()
    head.fit(x, rng.random(60) < 0.5)
    again.restore(head.state("p"), "p")
    np.testing.assert_array_equal(again(x), head(x))


def test_rounding_hardly_moves_a_quality() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(1500, 3))
    target = rng.random(1500) < expit(1.5 * features[:, 0] + features[:, 1] * features[:, 2])
    one, other = MonotoneHead(), MonotoneHead()
    one.fit(features, target)
    other.fit(features * (1 + 1e-13 * rng.normal(size=features.shape)), target)  # as another processor might round
    # Seen: 4e-7, and 2.5e-4 with the optimiser's own tolerance.
    np.testing.assert_allclose(one(features), other(features), rtol=0, atol=2e-6)


def test_a_head_between_shifts_is_kept_until_the_shift_or_what_was_learned_changes() -> None:
    x = np.linspace(-1.0, 1.0, 200)
    one, other = ShiftedHead(), ShiftedHead()
    for head, sign in ((one, 1), (other, -1)):
        head.fit(lambda shift: (x - shift * (x > 0))[:, None], sign * x > 0, [0.0, 0.5], [np.linspace(-1.0, 1.0, 4)])
    probe = np.array([[0.2]])
    assert one.at(0.25) is one.at(0.25)
    assert one(probe, 0.25) != one(probe, 0.5)
    one.restore(other.state("h"), "h")
    np.testing.assert_array_equal(one(probe, 0.5), other(probe, 0.5))
