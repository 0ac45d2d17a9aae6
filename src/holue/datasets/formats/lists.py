"""Protocol lists: which samples form which template of which subject, before there are embeddings.

A protocol is published as lists long before anyone embeds its images. They are kept apart from embeddings, so
that one list serves every embedding model: :meth:`ProtocolLists.with_samples` joins the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from holue.datasets.formats.part import part_from_samples
from holue.datasets.formats.samples import Samples
from holue.errors import InvalidFileError, InvalidInputError
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart, check_disjoint, check_same_type, listed
from holue.gallery.subjects import Subjects


@dataclass(frozen=True, eq=False)
class TemplateList:
    """One row per sample of a template: ``sample`` is its row number (integers) or its name (strings).

    A list without ``sample`` can be counted but not joined with embeddings. ``origin`` is for messages.
    """

    template_id: Subjects
    subject_id: Subjects
    sample: Subjects | None = None
    media_id: Subjects | None = None
    origin: str = "template list"

    def __post_init__(self) -> None:
        for name in ("subject_id", "sample", "media_id"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.template_id):
                raise InvalidInputError(
                    f"{self.origin}: {name} has {len(column)} rows, template_id {len(self.template_id)}"
                )
        _, first, code = np.unique(self.template_id, return_index=True, return_inverse=True)
        mixed = self.subject_id != self.subject_id[first][code]
        if mixed.any():
            row = int(mixed.argmax())
            pair = (self.subject_id[first][code][row], self.subject_id[row])
            raise InvalidFileError(
                f"{self.origin}: template {self.template_id[row].item()!r} is given to subjects "
                f"{listed(pair)}; a template shows one subject"
            )

    def __len__(self) -> int:
        return len(self.template_id)

    @property
    def templates(self) -> tuple[Subjects, Subjects]:
        """Distinct template ids, sorted, and the subject of each."""
        ids, first = np.unique(self.template_id, return_index=True)
        return ids, self.subject_id[first]

    def where(self, rows: npt.NDArray[np.bool_]) -> TemplateList:
        """The rows of a mask."""
        return TemplateList(
            self.template_id[rows],
            self.subject_id[rows],
            None if self.sample is None else self.sample[rows],
            None if self.media_id is None else self.media_id[rows],
            self.origin,
        )

    def pick(self, samples: Samples) -> Samples:
        """The listed samples, with the list's subjects, templates and media."""
        picked = samples.take(self._rows_in(samples))
        media = self.media_id if self.media_id is not None else picked.media_id
        return replace(picked, subject_id=self.subject_id, template_id=self.template_id, media_id=media)

    def _rows_in(self, samples: Samples) -> npt.NDArray[np.int64]:
        if self.sample is None:
            raise InvalidFileError(
                f"{self.origin}: says which subject a template shows, not which samples it is made of; "
                "the list of samples (*_face_tid_mid.txt) is needed to join embeddings"
            )
        if self.sample.dtype.kind == "i":
            outside = (self.sample < 0) | (self.sample >= len(samples))
            if outside.any():
                raise InvalidFileError(
                    f"{self.origin}: sample {int(self.sample[outside][0])} is not a row of {samples.origin}, "
                    f"which has {len(samples)} rows"
                )
            return self.sample
        return _rows_by_name(self.sample, self.origin, samples)


@dataclass(frozen=True, eq=False)
class PartLists:
    """The template lists of one gallery and of the probes searched in it.

    Where samples are row numbers, ``n_samples`` is the number of rows that the embeddings must have.
    """

    gallery: TemplateList
    probes: TemplateList
    source: str = ""
    n_samples: int | None = None

    def __post_init__(self) -> None:
        try:
            check_same_type(self.gallery.subject_id, "the gallery's", self.probes.subject_id, "the probes'")
        except InvalidInputError as error:
            raise InvalidFileError(f"{self.gallery.origin} and {self.probes.origin}: {error}") from error

    @property
    def counts(self) -> dict[str, int]:
        """Enrolled subjects, mated and non-mated probe templates, and their subjects."""
        enrolled = np.unique(self.gallery.subject_id)
        _, probe_subjects = self.probes.templates
        mated = np.isin(probe_subjects, enrolled)
        return {
            "gallery_subjects": len(enrolled),
            "mated_probes": int(mated.sum()),
            "non_mated_probes": int((~mated).sum()),
            "mated_subjects": len(np.unique(probe_subjects[mated])),
            "non_mated_subjects": len(np.unique(probe_subjects[~mated])),
        }

    @property
    def subjects(self) -> Subjects:
        """Every subject of the part, enrolled or not, sorted."""
        return np.union1d(self.gallery.subject_id, self.probes.subject_id)

    def without(self, subjects: Subjects) -> PartLists:
        """The part without the templates of these subjects."""
        gallery, probes = (rows.where(~np.isin(rows.subject_id, subjects)) for rows in (self.gallery, self.probes))
        return PartLists(gallery, probes, self.source, self.n_samples)

    def with_samples(self, samples: Samples, *, weighting: str = "uniform") -> ProtocolPart:
        """Lists and embeddings → pooled templates."""
        if self.n_samples not in (None, len(samples)):
            raise InvalidFileError(
                f"{samples.origin}: {len(samples)} embeddings, but {self.probes.origin} and its gallery number "
                f"{self.n_samples} samples; row i must be the embedding of sample i"
            )
        gallery, probes = self.gallery.pick(samples), self.probes.pick(samples)
        return part_from_samples(gallery, probes, source=self.source, weighting=weighting)


@dataclass(frozen=True, eq=False)
class ProtocolLists:
    """Template lists of both parts; ``settings`` say how they were made (a seed, for instance)."""

    name: str
    development: PartLists
    evaluation: PartLists
    settings: Mapping[str, int | float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.development.source == self.evaluation.source:
            check_disjoint(self.development.subjects, self.evaluation.subjects)

    def with_samples(
        self, development: Samples, evaluation: Samples | None = None, *, weighting: str = "uniform"
    ) -> IdentificationProtocol:
        """Lists and embeddings → protocol; one file may serve both parts."""
        parts = (
            self.development.with_samples(development, weighting=weighting),
            self.evaluation.with_samples(evaluation or development, weighting=weighting),
        )
        notes = tuple(f"{key}: {value}" for key, value in self.settings.items())
        return IdentificationProtocol(self.name, *parts, notes)


def _rows_by_name(names: Subjects, origin: str, samples: Samples) -> npt.NDArray[np.int64]:
    if samples.sample_id is None:
        raise InvalidFileError(
            f"{samples.origin}: missing key 'sample_id': {origin} lists samples by name, "
            f"for instance {names[0].item()!r}"
        )
    known = samples.sample_id.astype(np.str_)
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    twice = ordered[1:] == ordered[:-1]
    if twice.any():
        raise InvalidFileError(
            f"{samples.origin}: key 'sample_id' holds {ordered[1:][twice][0].item()!r} more than once"
        )
    at = np.searchsorted(ordered, names).clip(max=len(ordered) - 1)
    absent = ordered[at] != names
    if absent.any():
        raise InvalidFileError(
            f"{samples.origin}: key 'sample_id' lacks {int(absent.sum())} of the {len(names)} samples "
            f"listed by {origin}: {listed(names[absent])}"
        )
    rows: npt.NDArray[np.int64] = order[at]
    return rows
