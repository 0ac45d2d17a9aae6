"""The registry: every experiment by its name."""

from __future__ import annotations

from holue.errors import InvalidParameterError
from holue.experiments.experiment import Experiment
from holue.experiments.sets.chimpanzees import CHIMPANZEES
from holue.experiments.sets.glyphs import GLYPHS
from holue.experiments.sets.lfw import LFW
from holue.experiments.sets.speakers import SPEAKERS

EXPERIMENTS: dict[str, Experiment] = {one.name: one for one in (LFW, SPEAKERS, CHIMPANZEES, GLYPHS)}


def find_experiment(name: str) -> Experiment:
    """The experiment of this name.

    >>> find_experiment("lfw").title
    'Faces: LFW, clean gallery, degraded probes'
    """
    if name not in EXPERIMENTS:
        raise InvalidParameterError(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]
