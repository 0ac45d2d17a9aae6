from __future__ import annotations

import numpy as np
import pytest

from holue.embedding.training.class_centres import ClassCentres, leave_one_out_cosines
from holue.errors import InvalidSubjectsError

RNG = np.random.default_rng(0)
SAMPLES = RNG.standard_normal((12, 5))
SUBJECTS = np.array(["c", "a", "b"] * 4)


def test_centres_are_normalised_means_of_unit_samples() -> None:
    centres = ClassCentres.from_samples(SAMPLES, SUBJECTS)
    assert list(centres.subjects) == ["a", "b", "c"]
    unit = SAMPLES / np.linalg.norm(SAMPLES, axis=1, keepdims=True)
    mean = unit[SUBJECTS == "b"].mean(axis=0)
    np.testing.assert_allclose(centres.directions[1], mean / np.linalg.norm(mean), rtol=1e-12)


def test_leaving_one_out_is_what_its_name_says() -> None:
    slow = []
    for row in range(12):
        others = (SUBJECTS[row] == SUBJECTS) & (np.arange(12) != row)
        centre = ClassCentres.from_samples(SAMPLES[others], SUBJECTS[others])
        slow.append(centre.cosines(SAMPLES[row : row + 1], SUBJECTS[row : row + 1])[0])
    np.testing.assert_allclose(leave_one_out_cosines(SAMPLES, SUBJECTS), slow, rtol=1e-10)


def test_others_that_cancel_say_nothing() -> None:
    assert leave_one_out_cosines([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], ["a"] * 3)[0] == 0


def test_class_weights_may_come_in_any_order() -> None:
    centres = ClassCentres.from_weights([[0.0, 2.0], [3.0, 0.0]], ["bob", "ann"])
    np.testing.assert_allclose(centres.cosines([[1.0, 0.0], [1.0, 0.0]], ["ann", "bob"]), [1, 0])


def test_a_subject_with_one_sample_is_named() -> None:
    with pytest.raises(InvalidSubjectsError, match=r"1 of 2 subjects have one sample \(first: 'b'\)"):
        leave_one_out_cosines(SAMPLES[:3], ["a", "a", "b"])


def test_a_subject_without_a_centre_is_named() -> None:
    centres = ClassCentres.from_samples(SAMPLES, SUBJECTS)
    for stranger in ("B", "z"):
        with pytest.raises(InvalidSubjectsError, match=f"'{stranger}' has no class centre"):
            centres.cosines(SAMPLES[:2], ["a", stranger])
    with pytest.raises(InvalidSubjectsError, match="'a' has two rows"):
        ClassCentres.from_weights([[1.0, 0.0], [0.0, 1.0]], ["a", "a"])
