"""Protocol part from samples: the gallery pooled per subject, the probes per template.

Directions and concentrations follow :mod:`holue.gallery.pooling`. A quality column is pooled like a
concentration: the mean over media of the mean over the samples of a medium. With σ² (n, d), the quality of a
sample is q_PFE = −H(σ²), H(σ²) = d / Σ_j σ_j⁻², the harmonic mean.
"""

from __future__ import annotations

import numpy as np

from holue.datasets.formats.samples import GROUP, ROWS_AT_ONCE, Samples
from holue.errors import InvalidFileError, InvalidInputError, InvalidParameterError
from holue.evaluation.protocol import ProtocolPart, listed
from holue.gallery.embeddings import Embeddings, Float64Array, FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.pooling import pool, pool_scores
from holue.gallery.subjects import Subjects
from holue.recognition.quality.sample import pfe_quality


def part_from_samples(
    gallery: Samples, probes: Samples, *, source: str = "", weighting: str = "uniform"
) -> ProtocolPart:
    """Gallery and probe samples → templates. Without ``template_id`` every probe sample is a probe.

    ``weighting`` is that of :func:`holue.gallery.pooling.pool`.

    >>> gallery = Samples.from_arrays({"embeddings": np.eye(3), "subject_id": [1, 1, 2]}, origin="gallery")
    >>> probes = Samples.from_arrays({"embeddings": np.eye(3), "subject_id": [1, 2, 3]}, origin="probes")
    >>> part_from_samples(gallery, probes)
    ProtocolPart(2 subjects enrolled, 2 mated and 1 non-mated probes, d=3)
    """
    subjects, enrolled = _pooled(gallery, gallery.subjects, weighting)
    if probes.template_id is None:
        templates, probe_subjects, groups, more = None, probes.subjects, probes.group, probes.more_groups
        pooled, qualities, names = _unpooled(probes), _quality_columns(probes), probes.sample_id
    else:
        templates, pooled = _pooled(probes, probes.template_id, weighting)
        probe_subjects = one_per_template(probes, "subject_id")
        groups = None if probes.group is None else one_per_template(probes, "group")
        more = {name: one_per_template(probes, GROUP + name) for name in probes.more_groups}
        qualities = {
            name: pool_scores(column, probes.template_id, media=probes.media_id)
            for name, column in _quality_columns(probes).items()
        }
        names = _sample_of_each_template(probes)
    try:
        return ProtocolPart(
            Gallery.of(subjects, enrolled.directions, concentrations=enrolled.concentrations),
            pooled,
            probe_subjects,
            templates,
            qualities,
            groups,
            source,
            more,
            names,
        )
    except InvalidInputError as error:
        raise InvalidFileError(f"{gallery.origin} and {probes.origin}: {error}") from error


def one_per_template(samples: Samples, key: str) -> Subjects:
    """The value of ``key`` in each template, in the order of sorted template ids; two values are an error."""
    templates, column = samples.required("template_id"), samples.required(key)
    ids, first, code = np.unique(templates, return_index=True, return_inverse=True)
    mixed = column != column[first][code]
    if mixed.any():
        at = int(code[int(mixed.argmax())])
        values = np.unique(column[code == at])
        raise InvalidFileError(
            f"{samples.origin}: template_id {ids[at].item()!r} holds {len(values)} values of {key!r} "
            f"({listed(values)}); a template shows one {key.removesuffix('_id')}"
        )
    return column[first]


def _sample_of_each_template(samples: Samples) -> Subjects | None:
    """The name of each template's sample, in the order of sorted template ids; ``""`` where it has several."""
    if samples.sample_id is None:
        return None
    _, first, count = np.unique(samples.required("template_id"), return_index=True, return_counts=True)
    names = samples.sample_id[first]
    return names if (count == 1).all() else np.where(count == 1, names.astype(np.str_), "")


def _pooled(samples: Samples, group: Subjects, weighting: str) -> tuple[Subjects, Embeddings]:
    """Templates, some tens of thousands of rows at a time: IJB-C's samples are a gigabyte, and pooling copies."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    keys: list[Subjects] = []
    pooled: list[Embeddings] = []
    start = 0
    while start < len(order):
        last = ordered[min(start + ROWS_AT_ONCE, len(order)) - 1]
        stop = int(np.searchsorted(ordered, last, side="right"))
        some, templates = _pooled_block(samples.take(order[start:stop]), ordered[start:stop], weighting)
        keys.append(some)
        pooled.append(templates)
        start = stop
    kappas = [templates.concentrations for templates in pooled]
    return np.concatenate(keys), Embeddings(
        np.concatenate([templates.directions for templates in pooled]),
        None if samples.concentration is None else np.concatenate([kappa for kappa in kappas if kappa is not None]),
    )


def _pooled_block(samples: Samples, group: Subjects, weighting: str) -> tuple[Subjects, Embeddings]:
    variance = samples.variance
    if variance is not None:
        variance = np.broadcast_to(variance, samples.embeddings.shape)
    try:
        return pool(
            samples.embeddings,
            group,
            media=samples.media_id,
            concentration=samples.concentration,
            variance=variance,
            weighting=weighting,
        )
    except InvalidParameterError:
        raise  # a setting of the caller's, not a fault of the file
    except InvalidInputError as error:
        raise InvalidFileError(f"{samples.origin}: {error}") from error


def _unpooled(samples: Samples) -> Embeddings:
    return Embeddings.from_samples(samples.embeddings, samples.concentration, field=f"{samples.origin}: embeddings")


def _quality_columns(samples: Samples) -> dict[str, Float64Array]:
    columns = {
        "concentration": samples.concentration,
        "pfe": None if samples.variance is None else _pfe(samples.variance),
        "scale": samples.scale,
        "quality": samples.quality,
    }
    return {name: column for name, column in columns.items() if column is not None}


def _pfe(variance: FloatArray) -> Float64Array:
    # One column is the same variance in every coordinate; two of them satisfy the formula's border check.
    wide = np.broadcast_to(variance, (len(variance), 2)) if variance.shape[1] == 1 else variance
    blocks = range(0, len(wide), ROWS_AT_ONCE)
    return np.concatenate([pfe_quality(wide[start : start + ROWS_AT_ONCE]) for start in blocks])
