"""Ablations answer the same question with a part exchanged."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from holue.experiments.ablation import FreeHead, mean_ablation


def test_a_head_that_saw_only_right_answers_is_a_constant() -> None:
    head = FreeHead(LogisticRegression())
    head.fit(np.zeros((5, 2)), np.ones(5, dtype=bool))
    np.testing.assert_array_equal(head(np.zeros((3, 2))), np.ones(3))


def test_means_over_seeds_leave_a_missing_value_missing() -> None:
    seeds = [{"a": {"prr_f1": 0.25, "prr_accuracy": np.nan, "calibration_error": 0.5}}] * 2
    assert mean_ablation(seeds) == {"a": {"prr_f1": 0.25, "prr_accuracy": None, "calibration_error": 0.5}}
    assert mean_ablation([]) == {}
