"""Conditions: everything that decides a PRR in the made-up world, and the causes, each of which varies one thing of it.

The world is an eighth of ``ijbc-world``: 221 subjects, 1 208 mated and 1 240 non-mated probes in each part. So all causes with
twenty seeds take some 25 minutes of one processor; most of that is the training of HolUE-MLP.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from holue.evaluation.comparison.settings import ThresholdFrom
from holue.experiments.sets.ijb_world import IJBC, WorldSettings

SMALLER = 8
WORLD = replace(
    IJBC,
    enrolled=IJBC.enrolled // SMALLER,
    others=IJBC.others // SMALLER,
    mated=IJBC.mated // SMALLER,
    non_mated=IJBC.non_mated // SMALLER,
)


@dataclass(frozen=True)
class Conditions:
    """A world, and how methods are run in it; the defaults are the paper's."""

    world: WorldSettings = WORLD
    development: WorldSettings | None = None  # of the development people, where they differ
    fpir: float = 0.05
    threshold_from: ThresholdFrom = "eval"
    temperature: float = 20.0
    head_probes: int | None = None  # how many development probes the heads learn from
    shuffled: bool = False  # κ_x says nothing: each probe has another's

    def of_world(self, **changes: Any) -> Conditions:
        """The same in a world that differs in these constants."""
        return replace(self, world=replace(self.world, **changes))


BASE = Conditions()


@dataclass(frozen=True)
class Level:
    """One value of what is varied; ``definition`` is that of PRR."""

    label: str
    conditions: Conditions = BASE
    definition: str = "20 points"


@dataclass(frozen=True)
class Cause:
    """One thing that is varied, from one end to the other; the base is one of its levels."""

    key: str
    title: str
    levels: tuple[Level, ...] = field(default=())


def _times(name: str, *factors: float) -> tuple[Level, ...]:
    """A constant of the world times these factors."""
    return tuple(
        Level(f"× {factor:g}" if factor != 1 else "as fitted", BASE.of_world(**{name: getattr(WORLD, name) * factor}))
        for factor in factors
    )


def _counts(name: str, *values: int) -> tuple[Level, ...]:
    return tuple(Level(f"{value}", BASE.of_world(**{name: value})) for value in values)


def _lost(factor: float) -> Conditions:
    shape, mean = WORLD.drop
    return BASE.of_world(drop=(shape, mean * factor))


POOR = 0.15
"""How much less of a person's direction the development probes of "poorer" keep."""

CAUSES: tuple[Cause, ...] = (
    Cause(
        "definition",
        "How PRR is counted",
        tuple(Level(one, BASE, one) for one in ("20 points", "every count", "counted")),
    ),
    Cause("fpir", "Target FPIR", tuple(Level(f"{one:g}", replace(BASE, fpir=one)) for one in (0.01, 0.05, 0.2))),
    Cause(
        "threshold",
        "Where the threshold comes from",
        (Level("evaluation probes"), Level("development", replace(BASE, threshold_from="dev"))),
    ),
    Cause("gallery", "Enrolled subjects", _counts("enrolled", WORLD.enrolled // 4, WORLD.enrolled, WORLD.enrolled * 4)),
    Cause(
        "strangers",
        "Non-mated probes",
        _counts("non_mated", WORLD.non_mated // 4, WORLD.non_mated, WORLD.non_mated * 4),
    ),
    Cause("poor", "Share of poor samples", _times("middling", 1, 3, 8)),
    Cause(
        "spread",
        "Spread of quality among the others",
        tuple(Level(f"× {one:g}" if one != 1 else "as fitted", _lost(one)) for one in (1, 3)),
    ),
    Cause(
        "kappa",
        "How good κ_x is",
        (
            Level("true", BASE.of_world(noise=0.0)),
            Level("learnt, as fitted"),
            Level("says nothing", replace(BASE, shuffled=True)),
        ),
    ),
    Cause("look-alikes", "Strangers with a look-alike", _times("look_alikes", 0, 1, 5)),
    Cause(
        "recogniser",
        "How good the recogniser is (rank-1)",
        tuple(
            Level(f"{label}", BASE.of_world(best=WORLD.best * factor))
            for label, factor in (("as fitted", 1.0), ("worse", 0.7), ("much worse", 0.5))
        ),
    ),
    Cause("wrong-faces", "Mated probes that show somebody else", _times("wrong_face", 0, 1, 4)),
    Cause(
        "temperature",
        "Temperature",
        tuple(Level(f"{one:g}", replace(BASE, temperature=one)) for one in (1.0, 20.0, 100.0)),
    ),
    Cause(
        "head",
        "Probes that heads learn from",
        tuple(Level("all" if one is None else f"{one}", replace(BASE, head_probes=one)) for one in (150, None)),
    ),
    Cause(
        "development",
        "Development people",
        (
            Level("alike"),
            Level("poorer", replace(BASE, development=replace(WORLD, best=WORLD.best - POOR))),
            Level("all good", replace(BASE, development=replace(WORLD, middling=0.0, broken=0.0, wrong_face=0.0))),
        ),
    ),
)
"""Every cause, in the order of the page."""
