from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from holue.errors import InvalidParameterError
from holue.recognition.risk.binomial import clopper_pearson
from holue.service.risk_check import Stratum, checked_risk


@given(
    st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), st.sampled_from([0.8, 0.95, 0.999])
)
def test_the_interval_is_that_of_scipy(counts: tuple[int, int], confidence: float) -> None:
    n, wrong = counts
    reference = binomtest(wrong, n).proportion_ci(confidence, "exact")
    np.testing.assert_allclose(clopper_pearson(wrong, n, confidence), reference, rtol=1e-9, atol=1e-12)


@given(st.floats(0.001, 0.4), st.floats(0.001, 0.4), st.sampled_from([(0.1, 0.9), (0.5, 0.5), (0.8, 0.2)]))
def test_the_interval_over_two_shares_covers_the_true_rate_as_often_as_it_says(
    first: float, second: float, weights: tuple[float, float]
) -> None:
    n, m = 12, 9
    true = weights[0] * first + weights[1] * second
    covered = 0.0
    for j in range(n + 1):
        for k in range(m + 1):
            strata = [Stratum(0.1, round(1000 * weights[0]), n, j), Stratum(0.5, round(1000 * weights[1]), m, k)]
            found = checked_risk(strata, confidence=0.9)
            if found.lower <= true <= found.upper:
                covered += binom.pmf(j, n, first) * binom.pmf(k, m, second)
    assert covered >= 0.9 - 1e-12


def test_the_rate_is_weighted_by_the_answers_and_not_by_the_sample() -> None:
    found = checked_risk([Stratum(0.01, 9000, 90, 9), Stratum(0.9, 1000, 900, 0)])
    assert found.rate == pytest.approx(0.9 * 0.1)
    assert (found.reviewed, found.wrong, found.answered) == (990, 9, 10_000)


@pytest.mark.parametrize(("wrong", "verdict"), [(0, "kept"), (4, "open"), (60, "broken")])
def test_the_promise_is_kept_open_or_broken(wrong: int, verdict: str) -> None:
    assert checked_risk([Stratum(0.1, 4000, 400, wrong)], promised=0.02).verdict == verdict
    assert checked_risk([Stratum(0.1, 4000, 400, wrong)]).verdict == "no promise"


def test_a_share_without_reviews_leaves_its_part_open() -> None:
    found = checked_risk([Stratum(0.1, 500, 0, 0), Stratum(0.2, 500, 100, 0)])
    assert found.rate == 0.0
    assert found.upper > 0.5


def test_risks_among_some_answers_only_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="fpir"):
        checked_risk([], risk="fpir")
