"""ProbeGroup: probes that were answered alike, for the same reason.

The first four kinds follow from the decision and its reason alone, which a user has too; only whether a clear answer was right
or wrong takes the truth.

    confident        accepted, nothing worth naming speaks against it, and right
    look-alikes      accepted, and the largest share of the doubt is a second candidate
    poor samples     rejected, and the largest share of the doubt is the sample
    near boundary    any other reason: mostly a score close to the threshold
    unknown          rejected and clear, and right
    let in           strangers accepted, for whatever reason
    missed           clear, and wrong
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.demo.scene import Scene

Rows = npt.NDArray[np.int64]

SHOWN = 6
"""Cards of a group."""


@dataclass(frozen=True, eq=False)
class ProbeGroup:
    """Rows of the probes, from the most to the least certain."""

    key: str
    title: str
    meaning: str
    rows: Rows
    wrong: int

    @property
    def shown(self) -> Rows:
        """Those with a card: equal steps from the most to the least certain, and no choice beyond that."""
        return spread(self.rows, SHOWN)


def probe_groups(scene: Scene) -> list[ProbeGroup]:
    """The groups, those without a probe left out."""
    outcomes, cause = scene.outcomes, np.array(scene.reasons.main_cause)
    accepted, right = outcomes.accepted, outcomes.correct
    clear = cause == "none"
    look_alike, poor = accepted & (cause == "look-alike"), ~accepted & (cause == "sample")
    members = (
        (
            "confident",
            "Confidently right",
            "A name, and nothing that speaks against it: the probabilities are one long bar.",
            accepted & clear & right,
        ),
        (
            "look-alikes",
            "Look-alikes",
            "The sample is close to two enrolled characters, and the probability is shared between them. No threshold on the "
            "score finds these: the best score can be high.",
            look_alike,
        ),
        (
            "poor-samples",
            "Poor and ordinary samples",
            "Nobody enrolled was found, in a sample as poor as others in which an enrolled character was missed: in a better "
            "sample it might have been accepted.",
            poor,
        ),
        (
            "near-boundary",
            "Near the boundary",
            "The best score is close to the threshold, and a slightly different sample would have been decided the other way.",
            ~clear & ~look_alike & ~poor,
        ),
        (
            "unknown",
            "Unknown, and rightly so",
            "Strangers: characters that nobody enrolled. Nothing in the gallery comes near them, and “nobody enrolled” gets the "
            "long bar.",
            ~accepted & clear & right,
        ),
        (
            "let-in",
            "Unknown, and let in",
            "Strangers that were taken for somebody enrolled, the error that the threshold limits. Compare the sample with "
            "the candidate; the uncertainty says which of them it saw coming.",
            ~outcomes.mated & accepted,
        ),
        (
            "missed",
            "Confidently wrong",
            "What the method misses: wrong answers without a reason for doubt.",
            clear & ~right,
        ),
    )
    order = np.argsort(scene.answers.uncertainty, kind="stable")
    groups = (
        ProbeGroup(key, title, meaning, order[mask[order]], int((mask & ~right).sum()))
        for key, title, meaning, mask in members
    )
    return [group for group in groups if len(group.rows)]


def spread(rows: Rows, count: int) -> Rows:
    """``count`` of the rows in equal steps, the first and the last among them.

    >>> spread(np.arange(100, 109), 3)
    array([100, 104, 108])
    >>> spread(np.arange(2), 3)
    array([0, 1])
    """
    steps = np.linspace(0, len(rows) - 1, min(count, len(rows)))
    return np.asarray(rows[np.round(steps).astype(np.int64)])
