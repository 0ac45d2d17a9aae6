"""ResidualSigmoidHead: the paper's network from the two KL terms to P(correct), and how it is trained.

The network (see ``network.py``) is trained full-batch for 2000 steps of Adam under a one-cycle learning rate with peak 1e-3, on
balanced binary cross-entropy (right answers and wrong ones weigh the same in total). Initialisation and schedule are those of
``torch.nn.Linear`` and ``torch.optim.lr_scheduler.OneCycleLR`` at their defaults, and the tests check every step against torch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, NotCalibratedError
from holue.evidence.threads.blas import single_threaded
from holue.gallery.embeddings import Float64Array
from holue.recognition.quality.heads.cells import merge_points
from holue.recognition.quality.heads.network import BalancedLoss, ResidualNetwork, sigmoid
from holue.recognition.quality.heads.one_cycle import OneCycleAdam


class ResidualSigmoidHead:
    """P(correct) from m features; fit once, then call.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> head = ResidualSigmoidHead(steps=300)
    >>> head.fit(x, x[:, 0] > 0, rng)
    >>> bool(head(np.array([[2.0, 0.0]]))[0] > 0.5 > head(np.array([[-2.0, 0.0]]))[0])
    True
    """

    network: ResidualNetwork | None = None

    def __init__(self, *, steps: int = 2000, peak_rate: float = 1e-3, max_points: int = 384) -> None:
        self.steps = steps
        self.peak_rate = peak_rate
        self.max_points = max_points

    def fit(self, features: Float64Array, correct: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
        """Train on features (n, m) and whether each answer was right.

        More than ``max_points`` probes are first merged into weighted cells (see ``cells.py``), so that the time does not grow
        with the validation set.
        """
        if correct.all() or not correct.any():
            kind = "wrong" if correct.all() else "right"
            raise CalibrationDataError(
                f"none of the {len(correct)} validation answers is {kind}: there is nothing to tell apart; bring harder "
                "validation probes (blurred, look-alikes, strangers), or use method='galue', which needs no training"
            )
        network = ResidualNetwork(features.shape[1])
        network.draw(rng)
        loss = BalancedLoss(network, *merge_points(features, correct, self.max_points))
        optimizer = OneCycleAdam(network.vector, self.steps, self.peak_rate)
        # The products are small: threads cost more than they give.
        with single_threaded():
            for _ in range(self.steps):
                optimizer.step(loss.gradient())
        self.network = network

    def __call__(self, features: Float64Array) -> Float64Array:
        """P(correct) (n,)."""
        if self.network is None:
            raise NotCalibratedError("this quality is learned from validation probes: call calibrate first")
        double = ResidualNetwork(features.shape[1], np.float64)
        double.vector[:] = self.network.vector
        return sigmoid(double.logits(features)).astype(np.float64)

    def state(self) -> dict[str, Float64Array]:
        """The weights, by number."""
        layers = [] if self.network is None else self.network.layers
        return {f"head_{i:02d}": np.asarray(layer, dtype=np.float64) for i, layer in enumerate(layers)}

    def restore(self, state: Mapping[str, Float64Array]) -> None:
        """Take back what :meth:`state` gave."""
        names = sorted(name for name in state if name.startswith("head_"))
        if not names:
            self.network = None
            return
        self.network = ResidualNetwork(state[names[0]].shape[1])
        for layer, name in zip(self.network.layers, names, strict=True):
            if layer.shape != state[name].shape or not np.isfinite(state[name]).all():
                raise ValueError(f"{name} must hold finite numbers of shape {layer.shape}")
            layer[:] = state[name]
