"""Interpolation: a probe that slides from one subject to another (the paper's Figure 3).

Halfway it could be either, and an uncertainty that reads the gallery is highest there. Sample quality does not see that: it has
its own low, away from the middle, where part of the sample is covered. HolUE is taken in closed form (HolUE-closed), which needs
no validation set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holue.evaluation.columns import FloatArray
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.reading import Reading

DIM = 8
COSINE = 0.6
"""Between the two subjects: alike enough that the way between them stays within reach of both."""
THRESHOLD = 0.7
QUALITY, COVERED_AT, COVERED_WIDTH, COVERED_LOSS = 60.0, 0.2, 0.1, 0.9


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Uncertainty of each method along the way, each scaled to 0..1 on its own as in the paper.

    >>> strip = interpolation()
    >>> {name: float(strip.position[values.argmax()].round(2)) for name, values in strip.uncertainty.items()}
    {'SCF': 0.2, 'GalUE': 0.5, 'HolUE': 0.5}
    """

    position: FloatArray  # (n,) from 0, the first subject, to 1, the second
    cosines: FloatArray  # (n, 2)
    concentration: FloatArray  # (n,)
    uncertainty: dict[str, FloatArray]

    def document(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "position": self.position.tolist(),
            "cosines": self.cosines.tolist(),
            "concentration": self.concentration.tolist(),
            "uncertainty": {name: values.tolist() for name, values in self.uncertainty.items()},
            "highest_at": {name: float(self.position[values.argmax()]) for name, values in self.uncertainty.items()},
        }


def interpolation(steps: int = 21) -> Interpolation:
    """Slide along the great circle from one subject to the other, and rate every probe by SCF, GalUE and HolUE (closed form)."""
    position = np.linspace(0.0, 1.0, steps)
    subjects = np.zeros((2, DIM))
    subjects[0, 0], subjects[1, :2] = 1.0, (COSINE, np.sqrt(1 - COSINE**2))
    angle = np.arccos(COSINE)
    directions = np.zeros((steps, DIM))
    directions[:, 0], directions[:, 1] = np.cos(position * angle), np.sin(position * angle)
    covered = np.exp(-(((position - COVERED_AT) / COVERED_WIDTH) ** 2))
    probes = Embeddings.from_samples(directions, QUALITY * (1 - COVERED_LOSS * covered))
    gallery = Gallery.from_samples(subjects, ["first", "second"])
    point = OperatingPoint.solve(dim=DIM, n_subjects=2, threshold=THRESHOLD)
    reading = Reading.of(probes, gallery, point, temperature=1.0, top_k=2)
    raw = {
        "SCF": -reading.probe_concentrations,
        "GalUE": 1.0 - np.exp(reading.posterior.log_p_best),
        "HolUE": 1.0 - np.exp(reading.convolved.log_p_best),
    }
    return Interpolation(
        position,
        directions @ subjects.T,
        reading.probe_concentrations,
        {name: (values - values.min()) / (values.max() - values.min()) for name, values in raw.items()},
    )
