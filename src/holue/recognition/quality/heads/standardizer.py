"""Standardizer: z-scores by the mean and population standard deviation of the validation probes."""

from __future__ import annotations

import numpy as np

from holue.errors import NotCalibratedError
from holue.gallery.embeddings import Float64Array


class Standardizer:
    """``z = (x − mean) / std`` column by column; a column that does not vary becomes 0."""

    mean: Float64Array | None = None
    std: Float64Array | None = None

    def fit(self, values: Float64Array) -> None:
        """Remember the mean and spread of each column of (n, m)."""
        self.mean = values.mean(axis=0)
        spread = values.std(axis=0)
        # A constant column has a spread of rounding only; dividing by it would turn rounding into signal.
        constant = spread <= 1e-12 * np.maximum(np.abs(self.mean), 1e-300)
        self.std = np.where(constant, np.inf, spread)

    def __call__(self, values: Float64Array) -> Float64Array:
        """Z-scores (n, m)."""
        if self.mean is None or self.std is None:
            raise NotCalibratedError("this quality is normalised by validation probes: call calibrate first")
        return (values - self.mean) / self.std

    def state(self) -> dict[str, Float64Array]:
        """The fitted numbers."""
        if self.mean is None or self.std is None:
            return {}
        return {"mean": self.mean, "std": self.std}

    def restore(self, state: object) -> None:
        """Take back what :meth:`state` gave."""
        if isinstance(state, dict) and "mean" in state:
            mean, std = state["mean"], state["std"]
            if mean.shape != std.shape or not np.isfinite(mean).all() or not (std > 0).all():
                raise ValueError("mean must be finite and std positive, one of each per column")
            self.mean, self.std = mean, std
