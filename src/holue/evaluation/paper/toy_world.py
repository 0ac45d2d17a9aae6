"""Toy world: two subjects on a circle, and two probes as far from the nearest of them (the paper's Figure 1).

Both probes are at the same angle from one subject, on either side of it; the inner one is also near the other subject. A score
that looks at the best match alone cannot tell them apart; HolUE, here in closed form (HolUE-closed), is less certain of the inner
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holue.evaluation.columns import FloatArray
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.model.decision_equation import threshold_from_concentration
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.model.posterior import log_posterior
from holue.recognition.reading import Reading

FIRST, SECOND = 40.0, 100.0
"""Angles of the two subjects, in degrees."""
OUTER, INNER = 15.0, 65.0
"""Angles of the two probes: both 25 degrees from the first subject, the inner one 35 degrees from the second."""
CONCENTRATION, PROBE_CONCENTRATION = 8.0, 40.0


@dataclass(frozen=True, eq=False)
class ToyWorld:
    """Posteriors and uncertainty along the circle, and the two probes.

    >>> world = toy_world()
    >>> world.outer_uncertainty < world.inner_uncertainty
    True
    """

    angles: FloatArray  # (n,) degrees
    posterior: FloatArray  # (n, 3): first subject, second subject, nobody enrolled
    uncertainty: FloatArray  # (n,) HolUE: 1 − max_c P(c|x), seen through the probe's own blur
    threshold: float
    outer_uncertainty: float
    inner_uncertainty: float

    def document(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "subjects_at_degrees": [FIRST, SECOND],
            "concentration": CONCENTRATION,
            "probe_concentration": PROBE_CONCENTRATION,
            "threshold": self.threshold,
            "outer_probe": {"degrees": OUTER, "uncertainty": self.outer_uncertainty},
            "inner_probe": {"degrees": INNER, "uncertainty": self.inner_uncertainty},
        }


def toy_world(n_angles: int = 721) -> ToyWorld:
    """GalUE's posterior and HolUE's uncertainty (closed form) at every angle."""
    angles = np.linspace(-180.0, 180.0, n_angles)
    gallery = Gallery.from_samples(_on_circle(np.array([FIRST, SECOND])), ["first", "second"])
    tau = threshold_from_concentration(2, 2, CONCENTRATION)
    point = OperatingPoint.solve(dim=2, n_subjects=2, threshold=tau)
    directions = _on_circle(angles)
    log_p, log_p_unknown = log_posterior(directions, gallery.directions, point.model, point.prior)
    outer, inner = _uncertainty(np.array([OUTER, INNER]), gallery, point)
    return ToyWorld(
        angles,
        np.exp(np.column_stack([log_p, log_p_unknown])),
        _uncertainty(angles, gallery, point),
        tau,
        float(outer),
        float(inner),
    )


def _uncertainty(angles: FloatArray, gallery: Gallery, point: OperatingPoint) -> FloatArray:
    probes = Embeddings.from_samples(_on_circle(angles), np.full(len(angles), PROBE_CONCENTRATION))
    reading = Reading.of(probes, gallery, point, temperature=1.0, top_k=2)
    return 1.0 - np.exp(reading.convolved.log_p_best)


def _on_circle(degrees: FloatArray) -> FloatArray:
    radians = np.deg2rad(degrees)
    return np.column_stack([np.cos(radians), np.sin(radians)])
