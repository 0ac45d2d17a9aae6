"""Shared error: what of the estimates' errors goes together in a segment, learned from its own rows when it is prepared.

Rows that are alike have codes that are alike, and their errors do not average out in the sums. How much is left of it cannot
be seen in one probe. So some rows leave the segment and are asked as strangers, some others are asked blurred, and the exact
sums say how far the estimated ones were off. Two numbers are kept: the shared part of the error, as a share of a row's deviation,
and by what factor the standard errors of the mean score have to be larger.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holue.evidence.binary.bits_needed import shares_to_score
from holue.evidence.binary.part import BinaryPart
from holue.evidence.binary.scan import BinaryGallery, scan_binary
from holue.evidence.scan import scan
from holue.gallery.embeddings import FloatArray
from holue.gallery.segment import Numbers, Segment

FEWEST_ROWS = 1024
"""Below, nothing is learned: the errors of so few rows are larger than what they share."""
STRANGERS, BLURRED = 96, 96
LEAST_COSINE, MOST_COSINE = 0.3, 0.8
DEVIATIONS = (0.25, 0.5, 1.0)
"""Sharpnesses that are learned at, times the typical deviation."""
ERRORS, MARGIN = 3.0, 1.5
"""All that are learned from are within so many standard errors, and then there is a margin."""
LEAST_REST = 0.05
"""The least share of the mass in rows that were not scored from which something is learned."""


def binary_segment(segment: Segment) -> BinaryPart:
    """The codes of all rows of a segment."""
    return prepared_rows(segment.directions, segment.numbers)


def prepared_rows(rows: FloatArray, numbers: Numbers) -> BinaryPart:
    """The codes of unit rows (n, d), of as many bits as they need, with what their errors share."""
    if len(rows) < FEWEST_ROWS:
        return BinaryPart.of_rows(rows, numbers)
    shares = shares_to_score(rows)
    part = learned(BinaryPart.of_rows(rows, numbers, shares.planes))
    return replace(part, one_bit_share=shares.one_bit)


def learned(part: BinaryPart) -> BinaryPart:
    """The same part with what its errors share; the same for the same rows."""
    rng = np.random.default_rng(0)
    rows = rng.choice(len(part), STRANGERS + BLURRED, replace=False)
    probes = np.asarray(part.exact[np.sort(rows)], dtype=np.float32)[np.argsort(np.argsort(rows))]
    noise = rng.standard_normal(probes[STRANGERS:].shape) / np.sqrt(part.dim)
    cosine = rng.uniform(LEAST_COSINE, MOST_COSINE, size=(BLURRED, 1))
    probes[STRANGERS:] = cosine * probes[STRANGERS:] + np.sqrt(1 - cosine**2) * noise
    probes /= np.linalg.norm(probes, axis=1, keepdims=True)
    gone = np.zeros(len(part), dtype=bool)
    gone[rows[:STRANGERS]] = True
    left = replace(part, gone=gone)
    typical = float(part.typical[1])
    if typical == 0:
        return part
    sharpness = np.array(DEVIATIONS) / typical
    exact = scan(probes, [left.block], sharpness, top_k=0)
    alone, together = (
        scan_binary(probes, BinaryGallery((replace(left, shared=shared),)), sharpness, top_k=0) for shared in (0.0, 1.0)
    )
    assert alone.precision is not None
    assert together.precision is not None
    variance, most = alone.precision.log_mass_error**2, together.precision.log_mass_error**2
    # The variance that a shared error of a whole deviation adds; where the rest is hardly anything, nothing can be learned.
    whole = most - variance
    off = np.where(whole > (LEAST_REST * np.array(DEVIATIONS)) ** 2, alone.log_mass - exact.log_mass, 0.0)
    missing = np.maximum((off / ERRORS) ** 2 - variance, 0.0)
    shared = MARGIN * float(np.sqrt(missing / np.maximum(whole, 1e-30)).max())
    error = scan_binary(probes, BinaryGallery((replace(left, shared=shared),)), sharpness, top_k=0).precision
    assert error is not None
    ratio = np.abs(alone.mean_score - exact.mean_score) / np.maximum(ERRORS * error.mean_score_error, 1e-6)
    return replace(part, shared=shared, mean_factor=max(1.0, MARGIN * float(ratio.max())))
