"""ShiftedHead: a monotone head for galleries of any size.

In a larger gallery strangers score higher. The threshold follows them by a shift Δ, and the score of a probe at its own subject
stays: measured from the threshold it is lower by Δ. A head that was fitted in one gallery would therefore say "nobody" too often
in a larger one. This head is fitted at several shifts, on the validation probes as they would look there, and its weights are
interpolated between them. It stays monotone, since no weight is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from holue.errors import NotCalibratedError
from holue.gallery.embeddings import Float64Array
from holue.recognition.quality.heads.monotone import MonotoneHead

NOT_SHIFTED = np.zeros(1)


class ShiftedHead:
    """P(yes) from m features at a shift.

    >>> x = np.linspace(-1.0, 1.0, 200)
    >>> head = ShiftedHead()
    >>> head.fit(lambda shift: (x - shift * (x > 0))[:, None], x > 0, [0.0, 0.5], [np.linspace(-1.0, 1.0, 4)])
    >>> low, middle, high = (head(np.array([[0.2]]), shift)[0] for shift in (0.0, 0.25, 0.5))
    >>> bool(low < middle < high)
    True
    """

    def __init__(self) -> None:
        self.shifts: Float64Array = NOT_SHIFTED  # ascending
        self.heads: tuple[MonotoneHead, ...] = ()  # one for each shift, all with the same knots
        # The last one that was interpolated, and all it was made of: a gallery of one size asks for one shift.
        self._last: tuple[float, Float64Array, tuple[MonotoneHead, ...], MonotoneHead] | None = None

    @property
    def is_fitted(self) -> bool:
        """Whether it has learned its weights."""
        return bool(self.heads) and self.heads[0].is_fitted

    def fit(
        self,
        features: Callable[[float], Float64Array],
        target: npt.NDArray[np.bool_],
        shifts: Sequence[float],
        knots: Sequence[Float64Array],
    ) -> None:
        """Fit at every one of the ascending ``shifts``, on the features (n, m) as they are there and what came true."""
        heads: list[MonotoneHead] = []
        for shift in shifts:
            head = MonotoneHead()
            head.fit(features(shift), target, knots=knots, start=heads[-1].weights if heads else None)
            heads.append(head)
        self.shifts, self.heads = np.asarray(shifts, dtype=np.float64), tuple(heads)

    def __call__(self, features: Float64Array, shift: float = 0.0) -> Float64Array:
        """P(yes) (n,)."""
        return self.at(shift)(features)

    def at(self, shift: float) -> MonotoneHead:
        """The head of one shift; beyond the first and the last it stays as it is there."""
        last = self._last
        if last is not None and last[0] == shift and last[1] is self.shifts and last[2] is self.heads:
            return last[3]
        if not self.is_fitted:
            raise NotCalibratedError("this quality is learned from validation probes: call calibrate first")
        place = float(np.interp(shift, self.shifts, np.arange(len(self.shifts))))
        low = int(place)
        high = min(low + 1, len(self.heads) - 1)
        head = MonotoneHead()
        head.knots = self.heads[0].knots
        head.weights = (low + 1 - place) * self._weights(low) + (place - low) * self._weights(high)
        self._last = shift, self.shifts, self.heads, head
        return head

    def state(self, prefix: str) -> dict[str, Float64Array]:
        """The fitted numbers, their names begun with ``prefix``."""
        if not self.is_fitted:
            return {}
        weights = np.array([self._weights(i) for i in range(len(self.heads))])
        return {**self.heads[0].state(prefix), f"{prefix}_weights": weights, f"{prefix}_shifts": self.shifts}

    def restore(self, state: Mapping[str, Float64Array], prefix: str) -> None:
        """Take back what :meth:`state` gave."""
        name = f"{prefix}_weights"
        if name not in state:
            self.shifts, self.heads = NOT_SHIFTED, ()
            return
        # Earlier saves have one row of weights, fitted at the size of the validation gallery.
        shifts, weights = state.get(f"{prefix}_shifts", NOT_SHIFTED), np.atleast_2d(state[name])
        if shifts.ndim != 1 or len(shifts) != len(weights) or not np.isfinite(shifts).all():
            raise ValueError(f"{prefix}_shifts must be {len(weights)} finite numbers, got shape {shifts.shape}")
        if (np.diff(shifts) <= 0).any():
            raise ValueError(f"{prefix}_shifts must rise")
        heads = []
        for row in weights:
            head = MonotoneHead()
            head.restore({**state, name: row}, prefix)
            heads.append(head)
        self.shifts, self.heads = shifts, tuple(heads)

    def _weights(self, place: int) -> Float64Array:
        weights = self.heads[place].weights
        assert weights is not None
        return weights
