"""The made-up world with IJB-C's errors."""

from __future__ import annotations

import numpy as np

from holue.evaluation.comparison.study import evaluate
from holue.experiments.sets.ijb_world import world_protocol

SMALLER = 8


def test_the_same_seed_gives_the_same_world() -> None:
    one, other = (world_protocol(3, 40).evaluation for _ in range(2))
    np.testing.assert_array_equal(one.probes.directions, other.probes.directions)
    assert not np.array_equal(one.probes.directions, world_protocol(4, 40).evaluation.probes.directions)


def test_its_errors_are_of_the_kinds_and_shares_of_the_authors() -> None:
    """On IJB-C at FPIR 0.05: DIR 0.960, and of all errors 56 % are accepted strangers."""
    protocol = world_protocol(0, SMALLER)
    assert (protocol.evaluation.mated.sum(), (~protocol.evaluation.mated).sum()) == (9670 // SMALLER, 9923 // SMALLER)
    point = evaluate(protocol, fpir=0.05, methods=["galue"], threshold_from="eval", n_resamples=2).points[0]
    counts = point.outcomes.counts
    errors = counts.false_acceptances + counts.false_rejections + counts.misidentifications
    assert 0.93 < (point.recognition["dir"].value or 0) < 0.985
    assert 0.4 < counts.false_acceptances / errors < 0.75
