"""Columns: what is not one real number per probe is refused by name and row."""

import numpy as np
import pytest

from holue.errors import InvalidInputError
from holue.evaluation.columns import numbers


def test_nan_is_refused_with_its_row_and_infinity_is_not():
    with pytest.raises(InvalidInputError, match="quality must not be NaN; row 2"):
        numbers("quality", [0.0, np.inf, np.nan])
    assert numbers("quality", [-np.inf, np.inf]).tolist() == [-np.inf, np.inf]


@pytest.mark.parametrize("wrong", [["a"], [1j], [None], [[1.0]], []])
def test_what_is_not_a_column_of_real_numbers_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="quality"):
        numbers("quality", wrong)
