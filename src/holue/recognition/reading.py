"""Reading: everything one scan at one operating point says about a batch of probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidConcentrationError
from holue.evidence.evidence import Evidence
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.model.class_model import ConvolvedVonMisesFisher, Posterior, close, log_peak
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.search.search import Search

DECISION, TEMPERED = 0, 1
"""Columns of the evidence: sharpness κ, for decisions and the model's posterior, and κ/T, for HolUE."""

KEPT = 10
"""Candidates that are always kept: the probabilities of an answer read them one by one, whatever number is shown."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Probes, a search of the gallery, the operating point and the evidence: what every quality score reads."""

    probes: Embeddings
    search: Search
    point: OperatingPoint
    temperature: float
    evidence: Evidence

    @classmethod
    def of(
        cls,
        probes: Embeddings,
        gallery: Gallery | Search,
        point: OperatingPoint,
        *,
        temperature: float,
        top_k: int = 5,
        threads: int | None = None,
    ) -> Reading:
        """Scan the gallery once, at both sharpnesses; the best ``KEPT`` subjects are always kept."""
        kept = max(top_k, min(KEPT, len(gallery)))
        return cls.at_points(probes, gallery, [point], temperature=temperature, top_k=kept, threads=threads)[0]

    @classmethod
    def at_points(
        cls,
        probes: Embeddings,
        gallery: Gallery | Search,
        points: Sequence[OperatingPoint],
        *,
        temperature: float,
        top_k: int,
        threads: int | None = None,
    ) -> list[Reading]:
        """One scan at both sharpnesses of every operating point; each reading has its two columns of the evidence."""
        search = GallerySearch.exact(gallery) if isinstance(gallery, Gallery) else gallery
        sharpness = [a for point in points for a in (point.concentration, point.concentration / temperature)]
        decisive = min(point.threshold for point in points)
        evidence = search.scan(probes.directions, sharpness, top_k=top_k, decisive=decisive, threads=threads)
        columns = (evidence.columns(slice(2 * i, 2 * i + 2)) for i in range(len(points)))
        return [cls(probes, search, point, temperature, own) for point, own in zip(points, columns)]

    def __len__(self) -> int:
        return len(self.probes)

    def take(self, rows: npt.NDArray[np.int64]) -> Reading:
        """The reading of some of the probes, without another scan."""
        evidence = self.evidence.take(rows)
        return Reading(self.probes.take(rows), self.search, self.point, self.temperature, evidence)

    @cached_property
    def best_score(self) -> Float64Array:
        """The acceptance score ``s(p) = max_c μ_c·z``."""
        return np.asarray(self.evidence.top_scores[:, 0], dtype=np.float64)

    @cached_property
    def accepted(self) -> npt.NDArray[np.bool_]:
        """``s(p) ≥ τ``, which is ``p_0 ≤ max_c p_c`` (paper, decision equivalence)."""
        return np.asarray(self.best_score >= self.point.threshold)

    @cached_property
    def posterior(self) -> Posterior:
        """GalUE's posterior, at T = 1."""
        return close(self.evidence, DECISION, self.point.model, self.point.prior, len(self.search))

    @cached_property
    def tempered(self) -> Posterior:
        """HolUE's posterior, at temperature T."""
        point = self.point
        return close(self.evidence, TEMPERED, point.model, point.prior, len(self.search), self.temperature)

    @cached_property
    def convolved(self) -> Posterior:
        """The posterior seen through each probe's own uncertainty, in closed form (a scan of its own)."""
        point = self.point
        model = ConvolvedVonMisesFisher(point.dim, point.concentration, self.probe_concentrations)
        evidence = self.search.scan(self.probes.directions, [1.0], top_k=1, link=model.link)
        return close(evidence, 0, model, point.prior, len(self.search))

    @property
    def probe_concentrations(self) -> Float64Array:
        """``κ_x``, or an error where the probes came without."""
        kappa = self.probes.concentrations
        if kappa is None:
            raise InvalidConcentrationError(
                "this method reads the quality of each probe, and no concentration was given; pass concentration=, "
                "or use method='galue' or 'acceptance', which need none"
            )
        return kappa

    @property
    def log_peak(self) -> Float64Array:
        """``κ_x − log α(κ_x)``: how peaked each probe's own distribution is."""
        return log_peak(self.point.dim, self.probe_concentrations)

    @property
    def holistic_terms(self) -> tuple[Float64Array, Float64Array]:
        """KL₁ and KL₂ of HolUE with the mean-value approximation (paper, Lemma 2)."""
        return self.tempered.kl_gallery, self.tempered.kl_unknown(self.log_peak)
