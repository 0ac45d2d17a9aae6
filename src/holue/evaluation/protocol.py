"""Identification protocol: a gallery with mated and non-mated probes, for development and for evaluation.

A *part* is one gallery (one template per subject) and the probe templates searched in it. A probe is
**mated** when its subject is enrolled, **non-mated** when it is not (ISO/IEC 19795-1). Thresholds,
normalisation and calibration are learnt on the development part and numbers are reported on the evaluation
part, so no subject may be in both.

Quality columns hold one number per probe, higher = more reliable:

    concentration   κ_x of a vMF embedding                            q_SCF = κ_x
    pfe             −H(σ²), H the harmonic mean over coordinates      q_PFE = −H(σ²)
    scale           s(x), the learnt scale inside the logits          q_SF  = s(x)
    quality         any other score that came with the embeddings
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidEmbeddingsError, InvalidInputError, InvalidSubjectsError
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.gallery.subjects import Subjects

_KIND_NAMES = {"i": "integers", "U": "strings"}
_SHOWN = 5


@dataclass(frozen=True, eq=False)
class ProtocolPart:
    """One gallery and the probes searched in it, both as pooled templates.

    ``source`` names the collection in which subject ids are unique. Subject 14 of MS1MV2 and subject 14 of
    IJB-C are two people: parts of different sources are disjoint whatever their ids. ``probe_samples`` names the sample
    behind each probe, and is empty (``""``) for a template of several.

    >>> part = ProtocolPart(
    ...     Gallery.from_samples([[1.0, 0.0]], ["ann"]),
    ...     Embeddings.from_samples([[0.9, 0.1], [0.0, 1.0]]),
    ...     np.array(["ann", "eve"]),
    ... )
    >>> part.mated
    array([ True, False])
    """

    gallery: Gallery
    probes: Embeddings
    probe_subjects: Subjects
    probe_templates: Subjects | None = None
    qualities: Mapping[str, Float64Array] = field(default_factory=dict)
    groups: Subjects | None = None
    source: str = ""
    more_groups: Mapping[str, Subjects] = field(default_factory=dict)
    probe_samples: Subjects | None = None

    def __post_init__(self) -> None:
        n = len(self.probes)
        columns: dict[str, npt.NDArray[np.generic] | None] = {
            "probe_subjects": self.probe_subjects,
            "probe_templates": self.probe_templates,
            "probe_samples": self.probe_samples,
            "groups": self.groups,
            **{f"more_groups[{name!r}]": column for name, column in self.more_groups.items()},
            **{f"qualities[{name!r}]": column for name, column in self.qualities.items()},
        }
        for name, column in columns.items():
            if column is not None and column.shape != (n,):
                raise InvalidInputError(
                    f"{name} must hold one entry per probe: got shape {column.shape} for {n} probes"
                )
        for name, column in self.qualities.items():
            finite = np.isfinite(column)
            if not finite.all():
                row = int(np.argmin(finite))
                raise InvalidInputError(
                    f"qualities[{name!r}] must be finite: probe {row} has {float(column[row])}; "
                    "leave the column out or score the probe"
                )
        if self.probes.dim != self.gallery.dim:
            raise InvalidEmbeddingsError(
                f"embeddings: probes have {self.probes.dim} features and the gallery has {self.gallery.dim}: "
                "both must come from the same embedding model"
            )
        check_same_type(self.gallery.subjects, "the gallery's", self.probe_subjects, "the probes'")

    @cached_property
    def mated(self) -> npt.NDArray[np.bool_]:
        """Whether each probe's subject is enrolled."""
        return np.isin(self.probe_subjects, self.gallery.subjects)

    @cached_property
    def subjects(self) -> Subjects:
        """Every subject of the part, enrolled or not, sorted."""
        return np.union1d(self.gallery.subjects, self.probe_subjects)

    @property
    def probe_names(self) -> list[str]:
        """What to call each probe: its sample, else its template, else its row."""
        names = [str(i) for i in range(len(self.probes))]
        for column in (self.probe_templates, self.probe_samples):
            if column is not None:
                names = [str(name) if name != "" else other for name, other in zip(column.tolist(), names)]
        return names

    @property
    def group_columns(self) -> dict[str, Subjects]:
        """Every grouping of the probes by name: ``group``, and those of ``more_groups`` (sex, age band, device)."""
        first = {} if self.groups is None else {"group": self.groups}
        return {**first, **self.more_groups}

    @property
    def counts(self) -> dict[str, int]:
        """Sizes worth printing: enrolled subjects, mated and non-mated probes, their subjects, and d."""
        return {
            "gallery_subjects": len(self.gallery),
            "mated_probes": int(self.mated.sum()),
            "non_mated_probes": int((~self.mated).sum()),
            "mated_subjects": len(np.unique(self.probe_subjects[self.mated])),
            "non_mated_subjects": len(np.unique(self.probe_subjects[~self.mated])),
            "dim": self.probes.dim,
        }

    def __repr__(self) -> str:
        counts = self.counts
        return (
            f"ProtocolPart({counts['gallery_subjects']} subjects enrolled, {counts['mated_probes']} mated "
            f"and {counts['non_mated_probes']} non-mated probes, d={counts['dim']})"
        )


@dataclass(frozen=True, eq=False)
class IdentificationProtocol:
    """A development and an evaluation part with different subjects, each with mated and non-mated probes.

    ``notes`` say where the parts came from, for reports.
    """

    name: str
    development: ProtocolPart
    evaluation: ProtocolPart
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for role, part in self.parts.items():
            check_open_set(role, part)
        if self.development.probes.dim != self.evaluation.probes.dim:
            raise InvalidEmbeddingsError(
                f"the development part has {self.development.probes.dim} features and the evaluation part "
                f"{self.evaluation.probes.dim}: both must come from the same embedding model"
            )
        if self.development.source == self.evaluation.source:
            check_disjoint(self.development.subjects, self.evaluation.subjects)

    @property
    def parts(self) -> dict[str, ProtocolPart]:
        """The two parts by role: ``development`` and ``evaluation``."""
        return {"development": self.development, "evaluation": self.evaluation}

    @property
    def quality_names(self) -> tuple[str, ...]:
        """Quality columns that both parts have: these can be calibrated on one and scored on the other."""
        return tuple(name for name in self.evaluation.qualities if name in self.development.qualities)

    @property
    def unpaired_qualities(self) -> tuple[str, ...]:
        """Quality columns that only one part has: a method that needs one of them cannot be evaluated."""
        return tuple(sorted(set(self.evaluation.qualities) ^ set(self.development.qualities)))


def listed(ids: Iterable[object], *, shown: int = _SHOWN) -> str:
    """The first few ids, for a message: ``'ann', 'bob' and 3 more``."""
    everything = [item.item() if isinstance(item, np.generic) else item for item in ids]
    head = ", ".join(repr(item) for item in everything[:shown])
    return head if len(everything) <= shown else f"{head} and {len(everything) - shown} more"


def check_same_type(first: Subjects, first_name: str, second: Subjects, second_name: str) -> None:
    """Refuse integers against strings: they never match, and every probe would look non-mated."""
    if first.dtype.kind != second.dtype.kind:
        kinds = [_KIND_NAMES.get(ids.dtype.kind, f"dtype {ids.dtype}") for ids in (first, second)]
        raise InvalidSubjectsError(
            f"subject_id: {first_name} are {kinds[0]} and {second_name} are {kinds[1]}, so they could never "
            "match; convert one of them, for instance with .astype(str)"
        )


def check_open_set(role: str, part: ProtocolPart) -> None:
    """Refuse a part without mated or without non-mated probes: its rates would have empty denominators."""
    if not part.mated.any():
        raise InvalidSubjectsError(
            f"subject_id: the {role} part has no mated probes: none of its {len(part.probes)} probes shows "
            "an enrolled subject; open-set rates need both kinds, check that the ids match the gallery's"
        )
    if part.mated.all():
        raise InvalidSubjectsError(
            f"subject_id: the {role} part has no non-mated probes: each of its {len(part.probes)} probes "
            "shows an enrolled subject; open-set rates need both kinds, leave some subjects unenrolled"
        )


def check_disjoint(development: Subjects, evaluation: Subjects) -> None:
    """Refuse subjects that are in both parts."""
    check_same_type(development, "the development part's", evaluation, "the evaluation part's")
    shared = np.intersect1d(development, evaluation)
    if len(shared):
        raise InvalidSubjectsError(
            f"subject_id: development and evaluation share {len(shared)} subjects ({listed(shared)}); what "
            "is learnt on the first would have seen the second: remove them from one part or split by subject"
        )
