"""Rates per group: right for each, honest about small ones, and the worst ratio named."""

import json

import numpy as np
import pytest

from holue.errors import InvalidInputError, InvalidParameterError, InvalidSubjectsError
from holue.evaluation.deployment.groups import GroupTable, Guarantee, group_rates
from holue.evaluation.metrics.rates import fnir, fpir
from holue.evaluation.outcomes import Outcomes


def population(
    rates: dict[str, float], subjects: int = 100, each: int = 4, seed: int = 0
) -> tuple[np.ndarray, Outcomes, np.ndarray]:
    """Groups whose probes fail with a given rate; half of the subjects are mated, a tenth of the probes filtered."""
    rng = np.random.default_rng(seed)
    n = len(rates) * subjects * each
    subject = np.repeat(np.arange(len(rates) * subjects), each)
    group = np.repeat(list(rates), subjects * each)
    mated = subject % 2 == 0
    failed = rng.random(n) < np.array([rates[g] for g in group])
    return group, Outcomes(mated, mated ^ failed, mated, subject=subject), rng.random(n) < 0.1


def test_each_group_has_the_rates_of_its_own_decided_probes() -> None:
    group, outcomes, filtered = population({"a": 0.1, "b": 0.3})
    table = group_rates(group, outcomes, filtered=filtered, rng=0)
    for name in ("a", "b"):
        rows = (group == name) & ~filtered
        columns = outcomes.mated[rows], outcomes.accepted[rows], outcomes.correct_subject[rows]
        assert table[name].rates["fpir"].value == pytest.approx(fpir(*columns))
        assert table[name].rates["fnir"].value == pytest.approx(fnir(*columns))
        assert table[name].rates["filtered_share"].value == pytest.approx(filtered[group == name].mean())
        assert (table[name].n_probes, table[name].n_subjects, table[name].small) == (400, 100, False)
    assert table.everybody.n_probes == 800


def test_the_worst_ratio_names_both_groups_and_its_interval_holds_the_truth() -> None:
    held = 0
    for seed in range(30):
        group, outcomes, filtered = population({"a": 0.1, "b": 0.15, "c": 0.3}, seed=seed)
        worst = group_rates(group, outcomes, filtered=filtered, rng=seed, n_resamples=200).worst["fpir"]
        assert worst.low is not None
        assert worst.high is not None
        held += (worst.highest, worst.lowest) == ("c", "a") and worst.low <= 3 <= worst.high
    assert held >= 22  # 95 % intervals, of the pair that happens to be the extreme one


def test_intervals_of_dependent_probes_are_wider() -> None:
    rng = np.random.default_rng(1)
    subject = np.repeat(np.arange(100), 10)
    together = np.repeat(rng.random(100) < 0.2, 10)
    apart = rng.permutation(together)
    zeros = np.zeros(1000, dtype=bool)
    widths = []
    for accepted in (together, apart):
        rate = group_rates(["all"] * 1000, Outcomes(zeros, accepted, zeros, subject=subject), rng=0)["all"].rates[
            "fpir"
        ]
        assert rate.low is not None
        assert rate.high is not None
        widths.append(rate.high - rate.low)
    assert widths[0] > 2 * widths[1]


def test_small_groups_are_flagged_and_kept_out_of_the_ratio_only() -> None:
    group, outcomes, _ = population({"a": 0.1, "b": 0.1})
    group = group.copy().astype("<U8")
    group[:4] = "lone"  # one mated subject
    group[8:40] = "few"  # eight subjects
    table = group_rates(group, outcomes, rng=0)
    assert table.flagged == ["few", "lone"]
    assert table["few"].rates["fnir"].note == "rests on 4 subjects"
    assert table["few"].rates["fnir"].value is not None
    lone = table["lone"].rates
    assert (lone["fnir"].low, lone["fnir"].note) == (None, "rests on one subject: no interval")
    assert (lone["fpir"].value, lone["fpir"].note) == (None, "is undefined: no such probe was decided")
    assert {table.worst["fnir"].highest, table.worst["fnir"].lowest} == {"a", "b"}
    assert "lone*" in str(table)
    assert "few: fnir rests on 4 subjects" in str(table)


def test_no_ratio_is_invented() -> None:
    group, outcomes, _ = population({"a": 0.0, "b": 0.2})
    table = group_rates(group, outcomes, rng=0)
    assert table.worst["fpir"].value is None
    assert table.worst["fpir"].note == "a has none, so there is no ratio"
    assert table.worst["filtered_share"].note == "no group has any"
    rate = table["a"].rates["fpir"]
    assert rate.value == rate.low == 0
    assert rate.high == pytest.approx(
        1 - 0.025 ** (1 / 50)
    )  # 50 subjects without an error do not prove that there is none
    alone = group_rates(np.full(len(group), "x"), outcomes, rng=0)
    assert alone.worst["fpir"].note == "1 of 1 groups are large enough to compare; it takes two"


def test_a_guarantee_is_given_group_by_group() -> None:
    group, outcomes, filtered = population({"a": 0.0, "b": 0.2}, subjects=400)
    table = group_rates(group, outcomes, filtered=filtered, rng=0, guarantee=Guarantee("error", 0.05, 0.9))
    bounds = {row.group: row.bound for row in table.rows}
    assert bounds["a"] is not None
    assert bounds["b"] is not None
    assert bounds["a"].certified
    assert not bounds["b"].certified
    assert bounds["b"].upper_bound > 0.2
    assert "0.0" in str(table)
    assert "certified" in str(table)


def test_bounds_of_all_groups_hold_together_as_often_as_they_say() -> None:
    held, worlds = 0, 50
    rates = {"a": 0.05, "b": 0.1, "c": 0.2}
    for seed in range(worlds):
        group, outcomes, _ = population(rates, subjects=60, seed=seed)
        table = group_rates(group, outcomes, rng=0, n_resamples=2, guarantee=Guarantee("error", 0.1, 0.8))
        held += all(row.bound is not None and rates[row.group] <= row.bound.upper_bound for row in table.rows)
    assert held / worlds >= 0.8 - 3 * np.sqrt(0.8 * 0.2 / worlds)


def test_the_table_is_plain_data() -> None:
    group, outcomes, filtered = population({"a": 0.1, "b": 0.3})
    table = group_rates(group, outcomes, filtered=filtered, rng=0, guarantee=Guarantee())
    plain = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert [row["group"] for row in plain["groups"]] == ["a", "b"]
    assert plain["worst_ratio"]["fnir"]["highest"] == "b"
    assert isinstance(table, GroupTable)


def test_bad_columns_are_named() -> None:
    group, outcomes, filtered = population({"a": 0.1, "b": 0.3})
    with pytest.raises(InvalidInputError, match="every column must have one row per probe: group has 5"):
        group_rates(group[:5], outcomes, rng=0)
    with pytest.raises(InvalidSubjectsError, match=r"group\[0\] is missing"):
        group_rates([None, *group[1:]], outcomes, rng=0)
    with pytest.raises(InvalidInputError, match="every column must have one row per probe"):
        group_rates(group, outcomes, filtered=filtered[:5], rng=0)
    with pytest.raises(InvalidInputError, match="name the subject of every probe"):
        group_rates(group, Outcomes(outcomes.mated, outcomes.accepted, outcomes.correct_subject), rng=0)
    with pytest.raises(InvalidParameterError, match="smallest must be"):
        group_rates(group, outcomes, rng=0, smallest=1)
    with pytest.raises(InvalidParameterError, match="level must lie"):
        group_rates(group, outcomes, rng=0, level=95)
    with pytest.raises(InvalidParameterError, match="target_level"):
        group_rates(group, outcomes, rng=0, guarantee=Guarantee(target_level=0))
    with pytest.raises(InvalidInputError, match="no group 'z'"):
        group_rates(group, outcomes, rng=0)["z"]
