"""Area: the surface of the unit sphere, whose reciprocal is the uniform density."""

from __future__ import annotations

import math
from decimal import Decimal

from holue.sphere.parameters import check_dim

#: π to 50 digits, for the few sums in which large terms cancel.
PI = Decimal("3.1415926535897932384626433832795028841971693993751")


def log_area(dim: int) -> float:
    """Logarithm of the area of the unit sphere in ``dim`` dimensions.

    log S = ln 2 + (d/2) ln π − lnΓ(d/2)

    >>> round(math.exp(log_area(3)) / math.pi, 12)
    4.0
    """
    half = check_dim(dim) / 2
    return math.log(2) + half * math.log(math.pi) - math.lgamma(half)
