"""The ``ijbc-world`` and ``ijbb-world`` experiments: made-up worlds whose errors are like those that the authors measured.

The authors' own runs on IJB-C and IJB-B (not HolUE) give the threshold, DIR and the counts of every kind of error at four FPIRs,
and how many of each are left when up to 30 % of the probes are filtered by SCF or by the acceptance score. The constants below
were found by random search and by hand until simulated galleries and probes of the same counts came near those numbers; no
number of HolUE was part of it. ``docs/why-the-level-differs.md`` has the fit. What a world is made of:

    people        lean to one of some groups; a few strangers have a look-alike in the gallery, very few are enrolled themselves
    quality       a probe keeps a share A of its person's direction; most are good, some middling, few broken
    strangers     their probes are poorer: SCF filters 35 % of them where it filters 25 % of the mated ones
    blur          what a poor probe loses turns to one common direction, which templates hold a little of as well
    wrong faces   some mated probes show somebody else, as detectors and labels have it
    κ_x           that of A, times log-normal noise, with less noise for poor probes
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.experiment import MAIN, Experiment, Protocols, Size
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery

Rows = npt.NDArray[np.float32]

DIM = 512
QUICK = 8
"""By how much a quick run is smaller."""


@dataclass(frozen=True)
class WorldSettings:
    """The constants of a world; these are fitted to IJB-C."""

    enrolled: int = 1772
    others: int = 1759  # people who are not enrolled
    mated: int = 9670
    non_mated: int = 9923
    groups: int = 50
    lean: float = 0.335  # mean square of a person's share of its group's direction
    lean_concentration: float = 81.13  # of the beta distribution of that share
    look_alikes: float = 0.058  # share of strangers with one
    look_alike_cosine: tuple[float, float] = (0.28, 0.78)
    template_blur: float = 0.09
    blur: float = 0.6
    broken: float = 0.0051
    worst: float = 0.451
    best: float = 0.66
    drop: tuple[float, float] = (1.599, 0.07107)  # shape and mean of a good probe's loss
    middling: float = 0.092
    middling_share: tuple[float, float] = (0.28, 0.6465)
    wrong_face: float = 0.0245
    wrong_is_enrolled: float = 0.2178
    wrong_share: tuple[float, float] = (0.1, 0.5)
    doubles: float = 0.0015  # share of strangers who are enrolled under another name
    stranger_loss: float = 0.06  # how much less of their direction strangers' probes keep
    noise: float = 0.65  # deviation of ln κ_x from the true one
    noise_power: float = 0.4  # the deviation falls with this power of a probe's share: the worst are known best


class World:
    """One recogniser's world: its groups and its blur are the same for all people."""

    def __init__(self, settings: WorldSettings, rng: np.random.Generator) -> None:
        self.settings, self.rng = settings, rng
        self.groups, self.common = self.directions(settings.groups), self.directions(1)

    def directions(self, n: int) -> Rows:
        """Uniform directions."""
        return unit(self.rng.normal(size=(n, DIM)).astype(np.float32))

    def people(self, n: int) -> Rows:
        """Mean directions of people."""
        mean, total = self.settings.lean, self.settings.lean_concentration
        lean = self.rng.beta(mean * total, (1 - mean) * total, size=(n, 1)).astype(np.float32)
        group = self.groups[self.rng.integers(len(self.groups), size=n)]
        return unit(np.sqrt(1 - lean) * self.directions(n) + np.sqrt(lean) * group)

    def shares(self, n: int) -> Rows:
        """A: how much of its person's direction each probe keeps."""
        s, rng = self.settings, self.rng
        shape, mean = s.drop
        share = np.clip(s.best - rng.gamma(shape, mean / shape, size=n), 0.02, 0.97)
        for part, bounds in ((s.middling, s.middling_share), (s.broken, (0.0, s.worst))):
            some = rng.random(n) < part
            share[some] = rng.uniform(*bounds, size=int(some.sum()))
        return share.astype(np.float32)

    def probes(self, mean: Rows, share: Rows) -> Embeddings:
        """Probes of these means, with what is known of κ_x."""
        a = share[:, None]
        blur = self.settings.blur * (1 - a)
        lost = np.sqrt(1 - blur**2) * self.directions(len(a)) + blur * self.common
        directions = unit(a * mean + np.sqrt(1 - a**2) * lost)
        kappa = DIM * share.astype(np.float64) / (1 - share.astype(np.float64) ** 2)
        noise = self.settings.noise * np.minimum(share / self.settings.best, 1.0) ** self.settings.noise_power
        return Embeddings.from_samples(directions, kappa * np.exp(noise * self.rng.normal(size=len(kappa))))

    def part(self, first: int, size: int = 1) -> ProtocolPart:
        """A gallery and probes of people numbered from ``first``; ``size`` times smaller."""
        s, rng = self.settings, self.rng
        enrolled, others, mated, non_mated = (n // size for n in (s.enrolled, s.others, s.mated, s.non_mated))
        means, strangers = self.people(enrolled), self.people(others)
        alike = np.flatnonzero(rng.random(others) < s.look_alikes)
        near = means[rng.integers(enrolled, size=len(alike))]
        cosine = rng.uniform(*s.look_alike_cosine, size=(len(alike), 1)).astype(np.float32)
        across = strangers[alike] - (strangers[alike] * near).sum(axis=1, keepdims=True) * near
        strangers[alike] = cosine * near + np.sqrt(1 - cosine**2) * unit(across)
        # Rounded at random: a drawn number of so few people would be most of the difference between two worlds.
        doubles = int(s.doubles * others + rng.random())
        strangers[:doubles] = means[rng.integers(enrolled, size=doubles)]
        # Quantiles of an exponential distribution, dealt out: its largest draws would differ too much between worlds.
        blur = -s.template_blur * np.log1p(-(rng.permutation(enrolled)[:, None] + 0.5) / enrolled)
        templates = unit(means + blur * self.common)
        who, stranger = rng.integers(enrolled, size=mated), rng.integers(others, size=non_mated)
        share, shown = self.shares(mated), means[who].copy()
        wrong = np.flatnonzero(rng.random(mated) < s.wrong_face)
        shown[wrong] = self.people(len(wrong))
        known = wrong[rng.random(len(wrong)) < s.wrong_is_enrolled]
        shown[known] = means[rng.integers(enrolled, size=len(known))]
        share[wrong] = rng.uniform(*s.wrong_share, size=len(wrong)).astype(np.float32)
        strangers_share = np.maximum(self.shares(non_mated) - s.stranger_loss, 0.02, dtype=np.float32)
        probes = self.probes(np.concatenate([shown, strangers[stranger]]), np.concatenate([share, strangers_share]))
        subjects = np.concatenate([who, enrolled + stranger]) + first
        return ProtocolPart(Gallery.of(np.arange(enrolled) + first, templates), probes, subjects)


IJBC = WorldSettings()
IJBB = WorldSettings(
    enrolled=931,
    others=914,
    mated=5016,
    non_mated=5254,
    lean=0.33,
    look_alikes=0.04,
    template_blur=0.075,
    middling=0.12,
    wrong_face=0.025,
    wrong_share=(0.1, 0.55),
    doubles=0.009,
    stranger_loss=0.075,
    noise=0.85,
    noise_power=0.3,
)
"""Fitted to IJB-B."""


def world_protocol(
    seed: int, size: int = 1, settings: WorldSettings = IJBC, *, development: WorldSettings | None = None
) -> IdentificationProtocol:
    """Development and evaluation people of one world; development people may have constants of their own."""
    world = World(development or settings, np.random.default_rng([seed, 11]))
    first = world.part(0, size)
    world.settings = settings
    return IdentificationProtocol("made-up world", first, world.part(100_000, size), (f"seed {seed}",))


def _experiment(name: str, title: str, settings: WorldSettings) -> Experiment:
    def load(size: Size) -> Protocols:
        return lambda seed: {MAIN: world_protocol(seed, QUICK if size.quick else 1, settings)}

    whole = f"A made-up world with the errors of {title}"
    return Experiment(name, whole, load, fpir=(0.05, 0.1, 0.2), oracle=True, paper=title)


IJBC_WORLD = _experiment("ijbc-world", "IJB-C", IJBC)
IJBB_WORLD = _experiment("ijbb-world", "IJB-B", IJBB)


def unit(rows: npt.NDArray[np.floating]) -> Rows:
    """Rows of length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)
