"""Passage: what the recogniser says along the way from one enrolled glyph to another (the paper's Figure 3, with real images).

Which pairs: every enrolled glyph with the one most like it (by the cosine of their templates), drawn in the first font that has
both, where the recogniser names both ends rightly and the shape keeps its ink on the way. Some ways stay *within reach*: one of
the two is named at every step. Others lead through "nobody enrolled", whose two borders are what is uncertain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.datasets.glyphs.morph import ink_kept, morph
from holue.datasets.glyphs.rendering import Pixels
from holue.demo.scene import Scene
from holue.gallery.embeddings import Float64Array
from holue.recognition.quality.calibrated import CalibratedQuality

STEPS = 25
"""A multiple of the eight gaps between nine pictures, and one."""
INK = 0.8
"""Of the lighter end, everywhere on the way."""
SHOWN = 3


@dataclass(frozen=True, eq=False)
class Passage:
    """One pair. Doubts are ranks among the demo's probes, so that they have one scale: 0 surest of all, 1 least sure."""

    first: str
    second: str
    cosine: float
    images: Pixels  # (steps, 32, 32)
    p_first: Float64Array  # (steps,) of the answer's calibrated distribution, as are the next two
    p_second: Float64Array
    p_unknown: Float64Array
    uncertainty: Float64Array
    concentration: Float64Array
    doubt: Float64Array  # share of the probes with a lower uncertainty
    sample_doubt: Float64Array  # share of the probes with a higher κ_x
    within_reach: bool

    @property
    def end_uncertainty(self) -> float:
        """The uncertainty of the less certain end."""
        return float(max(self.uncertainty[0], self.uncertainty[-1]))

    def document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = ("p_first", "p_second", "p_unknown", "uncertainty", "concentration", "doubt", "sample_doubt")
        columns = {name: getattr(self, name).tolist() for name in names}
        return {
            "first": self.first,
            "second": self.second,
            "cosine": self.cosine,
            "within_reach": self.within_reach,
            **columns,
        }


@dataclass(frozen=True, eq=False)
class Passages:
    """Every pair that follows the rule, the most alike first."""

    all: tuple[Passage, ...]
    considered: int

    @property
    def position(self) -> Float64Array:
        """From 0, the first glyph, to 1, the second."""
        return np.linspace(0.0, 1.0, STEPS)

    @property
    def within_reach(self) -> tuple[Passage, ...]:
        """Those on which one of the two glyphs is named at every step."""
        return tuple(passage for passage in self.all if passage.within_reach)

    @property
    def beyond(self) -> tuple[Passage, ...]:
        """The others."""
        return tuple(passage for passage in self.all if not passage.within_reach)

    @property
    def shown(self) -> tuple[Passage, ...]:
        """Those with a picture: within reach first, then the most certain ends; each glyph once."""
        chosen: list[Passage] = []
        for passage in sorted(self.all, key=lambda one: (not one.within_reach, one.end_uncertainty)):
            used = {label for one in chosen for label in (one.first, one.second)}
            if len(chosen) < SHOWN and not used & {passage.first, passage.second}:
                chosen.append(passage)
        return tuple(chosen)

    def document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "pairs_considered": self.considered,
            "pairs": len(self.all),
            "position": self.position.tolist(),
            "within_reach": _summary(self.within_reach),
            "beyond": _summary(self.beyond),
            "shown": [passage.document() for passage in self.shown],
        }


def mean_doubts(some: tuple[Passage, ...]) -> tuple[Float64Array, Float64Array]:
    """The doubt and the sample's, averaged over passages at each position."""
    doubt, sample = ([getattr(one, name) for one in some] for name in ("doubt", "sample_doubt"))
    return np.mean(doubt, axis=0), np.mean(sample, axis=0)


def highest_in_middle(some: tuple[Passage, ...]) -> tuple[int, int]:
    """How many passages have their highest doubt, and how many their poorest sample, in the middle half of the way."""
    position = np.linspace(0.0, 1.0, STEPS)
    middle = (position >= 0.25) & (position <= 0.75)
    doubt, sample = (
        sum(bool(middle[getattr(one, name).argmax()]) for one in some) for name in ("doubt", "sample_doubt")
    )
    return doubt, sample


def passages(scene: Scene) -> Passages:
    """Morph every pair of nearest glyphs, read all images in one go, and keep the pairs whose ends are named rightly."""
    gallery, position = scene.recognizer.gallery_, np.linspace(0.0, 1.0, STEPS)
    cosines = gallery.directions.astype(np.float64) @ gallery.directions.astype(np.float64).T
    drawn = []
    for first, second in _nearest_pairs(cosines):
        one, other = (scene.glyphs[str(gallery.subjects[row])] for row in (first, second))
        font = next((font for font in one.fonts if font in other.fonts), None)
        images = None if font is None else morph(one, other, font, position)
        if images is not None and ink_kept(images) >= INK:
            drawn.append((first, second, images))
    found = [] if not drawn else _read(scene, drawn, cosines)
    return Passages(tuple(found), len(drawn))


def _summary(some: tuple[Passage, ...]) -> dict[str, Any]:
    if not some:
        return {"pairs": 0}
    means, highest = mean_doubts(some), highest_in_middle(some)
    return {
        "pairs": len(some),
        "mean_doubt": means[0].tolist(),
        "mean_sample_doubt": means[1].tolist(),
        "highest_in_middle_half": {"doubt": highest[0], "sample_doubt": highest[1]},
    }


def _nearest_pairs(cosines: Float64Array) -> list[tuple[int, int]]:
    others = cosines.copy()
    np.fill_diagonal(others, -np.inf)
    pairs = {(min(row, nearest), max(row, nearest)) for row, nearest in enumerate(others.argmax(axis=1).tolist())}
    return sorted(pairs, key=lambda pair: (-cosines[pair], pair))


def _read(scene: Scene, drawn: list[tuple[int, int, Pixels]], cosines: Float64Array) -> list[Passage]:
    gallery, quality = scene.recognizer.gallery_, scene.recognizer.quality_
    assert isinstance(quality, CalibratedQuality)
    reading = scene.read(np.concatenate([images for _, _, images in drawn]), top_k=len(gallery))
    shape = (len(drawn), STEPS)
    uncertainty, probabilities = quality.uncertainty(reading), quality.probabilities(reading)
    doubt = _rank(uncertainty, scene.answers.uncertainty).reshape(shape)
    sample_doubt = _rank(-reading.probe_concentrations, -scene.concentrations).reshape(shape)
    by_subject = np.zeros_like(probabilities.candidates)
    np.put_along_axis(by_subject, reading.evidence.top_index, probabilities.candidates, axis=1)
    p, p_unknown, u = by_subject.reshape(*shape, -1), probabilities.nobody.reshape(shape), uncertainty.reshape(shape)
    kappa = reading.probe_concentrations.reshape(shape)
    best, accepted = reading.evidence.top_index[:, 0].reshape(shape), reading.accepted.reshape(shape)
    subjects = gallery.subjects
    return [
        Passage(
            str(subjects[first]),
            str(subjects[second]),
            float(cosines[first, second]),
            images,
            p[k, :, first],
            p[k, :, second],
            p_unknown[k],
            u[k],
            kappa[k],
            doubt[k],
            sample_doubt[k],
            bool(accepted[k].all() and np.isin(best[k], (first, second)).all()),
        )
        for k, (first, second, images) in enumerate(drawn)
        if accepted[k, 0] and accepted[k, -1] and best[k, 0] == first and best[k, -1] == second
    ]


def _rank(values: Float64Array, among: Float64Array) -> npt.NDArray[np.float64]:
    """The share of ``among`` below each value, ties counting half."""
    ordered = np.sort(among)
    below, up_to = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    return np.asarray((below + up_to) / (2 * len(ordered)))
