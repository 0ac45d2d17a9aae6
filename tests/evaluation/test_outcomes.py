"""Outcomes: three error kinds that are never merged, and columns checked at the border."""

import numpy as np
import pytest

from holue.errors import InvalidInputError, InvalidSubjectsError
from holue.evaluation.outcomes import OutcomeCounts, OutcomeKind, Outcomes

# Every combination of the three flags, and what it is by definition.
COMBINATIONS = [
    (True, True, True, OutcomeKind.TRUE_POSITIVE),
    (True, True, False, OutcomeKind.MISIDENTIFICATION),
    (True, False, True, OutcomeKind.FALSE_REJECTION),
    (True, False, False, OutcomeKind.FALSE_REJECTION),
    (False, True, True, OutcomeKind.FALSE_ACCEPTANCE),
    (False, True, False, OutcomeKind.FALSE_ACCEPTANCE),
    (False, False, True, OutcomeKind.TRUE_NEGATIVE),
    (False, False, False, OutcomeKind.TRUE_NEGATIVE),
]


@pytest.mark.parametrize(("mated", "accepted", "correct_subject", "kind"), COMBINATIONS)
def test_every_combination_of_flags_is_exactly_one_kind(mated, accepted, correct_subject, kind):
    outcomes = Outcomes([mated], [accepted], [correct_subject])
    assert outcomes.kind.tolist() == [kind]
    assert outcomes.false_acceptance.tolist() == [kind == OutcomeKind.FALSE_ACCEPTANCE]
    assert outcomes.false_rejection.tolist() == [kind == OutcomeKind.FALSE_REJECTION]
    assert outcomes.misidentification.tolist() == [kind == OutcomeKind.MISIDENTIFICATION]
    assert outcomes.correct.tolist() == [kind in (OutcomeKind.TRUE_POSITIVE, OutcomeKind.TRUE_NEGATIVE)]


def test_a_misidentification_is_a_false_negative_and_no_false_positive():
    counts = Outcomes([True], [True], [False]).counts
    assert (counts.false_negatives, counts.false_positives, counts.misidentifications) == (1, 0, 1)


def test_counts_add_up():
    mated, accepted, correct_subject, _ = (list(column) for column in zip(*COMBINATIONS))
    counts = Outcomes(mated, accepted, correct_subject).counts
    assert counts == OutcomeCounts(1, 2, 2, 1, 2)
    assert (counts.mated, counts.non_mated, counts.errors, counts.total) == (4, 4, 5, 8)


@pytest.mark.parametrize("flags", [[1, 0], [1.0, 0.0], np.array([True, False], dtype=object)])
def test_zero_and_one_are_read_as_flags(flags):
    outcomes = Outcomes(flags, [True, False], [True, False])
    assert outcomes.mated.dtype == np.bool_
    assert outcomes.mated.tolist() == [True, False]


@pytest.mark.parametrize("wrong", [[0, 2], [0.0, np.nan], ["yes", "no"], [None, True], [0.5, 1]])
def test_flags_that_are_not_boolean_are_refused_with_field_and_row(wrong):
    with pytest.raises(InvalidInputError, match=r"accepted must be booleans.*row [01]"):
        Outcomes([True, False], wrong, [True, False])


def test_columns_of_different_length_are_refused_by_name():
    with pytest.raises(InvalidInputError, match="mated has 2, accepted has 3"):
        Outcomes([True, False], [True, False, True], [True, False])
    with pytest.raises(InvalidInputError, match="subject has 1"):
        Outcomes([True, False], [True, False], [True, False], ["ann"])


def test_no_probes_at_all_is_refused():
    with pytest.raises(InvalidInputError, match="mated is empty"):
        Outcomes([], [], [])


def test_columns_must_be_flat():
    with pytest.raises(InvalidInputError, match=r"shape \(1, 2\)"):
        Outcomes([[True, False]], [True, False], [True, False])
    with pytest.raises(InvalidSubjectsError, match=r"shape \(2, 1\)"):
        Outcomes([True, False], [True, False], [True, False], [[1], [2]])
