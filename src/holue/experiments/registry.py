"""The registry: every experiment by its name."""

from __future__ import annotations

from holue.errors import InvalidParameterError
from holue.experiments.experiment import Experiment
from holue.experiments.paper.paper_set import PAPER_SETS, Sources
from holue.experiments.sets.chimpanzees import CHIMPANZEES
from holue.experiments.sets.chimpanzees_blind import CHIMPANZEES_BLIND
from holue.experiments.sets.glyphs import GLYPHS
from holue.experiments.sets.ijb_world import IJBB_WORLD, IJBC_WORLD
from holue.experiments.sets.lfw import LFW
from holue.experiments.sets.speakers import SPEAKERS

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for one in (LFW, SPEAKERS, CHIMPANZEES, CHIMPANZEES_BLIND, GLYPHS, IJBC_WORLD, IJBB_WORLD)
}


def find_experiment(name: str, sources: Sources | None = None) -> Experiment:
    """The experiment of this name; those on the paper's data sets need to know where their files are.

    >>> find_experiment("lfw").title
    'Faces: LFW, clean gallery, degraded probes'
    """
    if name in PAPER_SETS:
        if sources is None:
            raise InvalidParameterError(
                f"the experiment {name!r} needs --data, the folder with the files of its data set"
            )
        return PAPER_SETS[name].experiment(sources)
    if name not in EXPERIMENTS:
        known = ", ".join([*EXPERIMENTS, *PAPER_SETS])
        raise InvalidParameterError(f"there is no experiment {name!r}; choose from {known}")
    if sources is not None:
        raise InvalidParameterError(f"the experiment {name!r} reads HOLUE_DATA; --data is for {', '.join(PAPER_SETS)}")
    return EXPERIMENTS[name]
