"""Open-set split: one flat file of samples → the four files of a folder protocol, seeded.

Subjects are divided between development and evaluation. Within a part, a share of the subjects with two or
more *units* is known: ``enrolled`` units of each, drawn at random, go to the gallery and the others become
mated probes. All other subjects, those with a single unit among them, are non-mated. A unit is what must
stay together: a template where ``template_id`` is given, else a medium where ``media_id`` is given (frames
of one video on both sides would make the task trivial), else a sample.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holue.datasets.formats.folder import FolderSamples, write_folder
from holue.datasets.formats.part import one_per_template
from holue.datasets.formats.samples import Samples, read_samples
from holue.errors import InvalidFileError, InvalidParameterError

Mask = npt.NDArray[np.bool_]


def split_open_set(
    samples: Samples,
    rng: np.random.Generator,
    *,
    development_share: float = 0.5,
    known_share: float = 0.5,
    enrolled: int = 1,
) -> FolderSamples:
    """A seeded open-set split of ``samples`` by subject.

    ``known_share`` is a share of the subjects with two or more units; ``enrolled`` is the number of units
    of a known subject that go to the gallery (one is always left as a probe).

    >>> ids = np.repeat(np.arange(20), 3)
    >>> vectors = np.random.default_rng(1).normal(size=(60, 8))
    >>> samples = Samples.from_arrays({"embeddings": vectors, "subject_id": ids}, origin="example")
    >>> split = split_open_set(samples, np.random.default_rng(0))
    >>> split.protocol("example").evaluation
    ProtocolPart(5 subjects enrolled, 10 mated and 15 non-mated probes, d=8)
    """
    _check_shares(development_share, known_share, enrolled)
    unit_code, unit_subject = _units(samples)
    n_units = np.bincount(unit_subject)
    several = n_units >= 2
    development = _drawn(several, development_share, rng) | _drawn(~several, development_share, rng)
    known = np.zeros_like(several)
    for part in (development, ~development):
        known |= _drawn(part & several, known_share, rng)
    _check_kinds(samples, development, known)
    in_gallery = known[unit_subject] & (_shuffled_rank(unit_subject, rng) < _enrolled(n_units, enrolled)[unit_subject])

    sample_subject, gallery = unit_subject[unit_code], in_gallery[unit_code]
    dev = development[sample_subject]
    return FolderSamples(
        *(
            replace(samples.take(rows), origin=f"{samples.origin} ({name})")
            for name, rows in (
                ("dev gallery", dev & gallery),
                ("dev probes", dev & ~gallery),
                ("eval gallery", ~dev & gallery),
                ("eval probes", ~dev & ~gallery),
            )
        )
    )


def split_file(
    source: str | Path,
    folder: str | Path,
    *,
    seed: int = 0,
    development_share: float = 0.5,
    known_share: float = 0.5,
    enrolled: int = 1,
) -> FolderSamples:
    """Split one file of samples and write the folder protocol; an existing ``folder`` is refused."""
    samples = read_samples(source)
    split = split_open_set(
        samples,
        np.random.default_rng(seed),
        development_share=development_share,
        known_share=known_share,
        enrolled=enrolled,
    )
    write_folder(split, folder, suffix=Path(source).suffix)
    return split


def _units(samples: Samples) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Unit number of every sample, and subject number of every unit."""
    subject = np.unique(samples.subjects, return_inverse=True)[1].astype(np.int64)
    if samples.template_id is not None:
        one_per_template(samples, "subject_id")
        unit = np.unique(samples.template_id, return_inverse=True)[1].astype(np.int64)
    elif samples.media_id is not None:
        # Two people in one photograph are two units: a medium counts per subject.
        medium = np.unique(samples.media_id, return_inverse=True)[1]
        unit = np.unique(subject * (int(medium.max()) + 1) + medium, return_inverse=True)[1].astype(np.int64)
    else:
        unit = np.arange(len(samples))
    unit_subject = np.empty(int(unit.max()) + 1, dtype=np.int64)
    unit_subject[unit] = subject
    return unit, unit_subject


def _drawn(candidates: Mask, share: float, rng: np.random.Generator) -> Mask:
    """A random ``share`` of the candidates: at least one of them and, unless the share is 1, not all."""
    chosen = np.zeros_like(candidates)
    rows = np.flatnonzero(candidates)
    most = len(rows) - 1 if share < 1 and len(rows) > 1 else len(rows)
    chosen[rng.permutation(rows)[: min(max(round(share * len(rows)), 1), most)]] = True
    return chosen


def _shuffled_rank(group: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The place of each row among the rows of its group, in random order, from 0."""
    order = np.lexsort((rng.random(len(group)), group))
    starts = np.searchsorted(group[order], group[order])
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - starts
    return rank


def _enrolled(n_units: npt.NDArray[np.int64], enrolled: int) -> npt.NDArray[np.int64]:
    return np.minimum(enrolled, n_units - 1)


def _check_shares(development_share: float, known_share: float, enrolled: int) -> None:
    for name, share in (("development_share", development_share), ("known_share", known_share)):
        if not 0 < share < 1 and not (name == "known_share" and share == 1):
            raise InvalidParameterError(f"{name} must lie between 0 and 1, got {share}")
    if enrolled < 1:
        raise InvalidParameterError(f"enrolled must be at least 1 sample per known subject, got {enrolled}")


def _check_kinds(samples: Samples, development: Mask, known: Mask) -> None:
    for name, part in (("development", development), ("evaluation", ~development)):
        for kind, count in (("known", (part & known).sum()), ("non-mated", (part & ~known).sum())):
            if count == 0:
                raise InvalidFileError(
                    f"{samples.origin}: key 'subject_id': the {name} part would have no {kind} subjects "
                    f"among its {int(part.sum())}; change known_share or development_share, or use a file "
                    "with more subjects (known ones need two samples or more)"
                )
