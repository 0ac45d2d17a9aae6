"""Groups: error rates of each group of probes (sex, age band, species, device), with intervals and the worst ratio.

Rates are among automatic decisions, as in ``holue.recognition.risk.decisions``; a filtered probe is in no rate but the filtered
share:

    FPIR = accepted strangers / strangers decided        FNIR = mated probes not identified / mated probes decided
    filtered share = filtered / all

Intervals resample subjects, all groups together, so that a ratio of two groups has one too; where a rate is 0 or 1, which
resampling cannot vary, the exact bound for as many independent subjects stands in. A group whose rate rests on fewer
than ``smallest`` subjects keeps its row and is flagged; it takes no part in the worst ratio, where it would win or lose by
chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.columns import BoolArray, flags, same_length
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.subject_rates import SubjectRate, SubjectRates, percentiles, quotients
from holue.evaluation.outcomes import Outcomes
from holue.gallery.subjects import as_subjects
from holue.recognition.checks import check_share
from holue.recognition.risk.decisions import Decisions, check_unit, risk_columns
from holue.recognition.risk.fixed_sequence import chosen_test

RATES = ("fpir", "fnir", "filtered_share")


@dataclass(frozen=True)
class Guarantee:
    """A risk to be certified group by group: at most ``target_level`` with ``confidence_level`` for all groups at once."""

    risk: str = "error"
    target_level: float = 0.01
    confidence_level: float = 0.95
    unit: str = "subject"


@dataclass(frozen=True)
class GroupBound:
    """What can be guaranteed for one group: the risk is at most ``upper_bound``; does that certify the target?"""

    n_decided: int
    n_wrong: int
    upper_bound: float
    certified: bool


@dataclass(frozen=True)
class WorstRatio:
    """The highest rate over the lowest, which two groups have them, and the interval of that pair's ratio."""

    rate: str
    highest: Any
    lowest: Any
    value: float | None
    low: float | None
    high: float | None
    note: str | None = None


@dataclass(frozen=True)
class GroupRow:
    """One group."""

    group: Any
    n_probes: int
    n_subjects: int
    rates: Mapping[str, SubjectRate]
    bound: GroupBound | None = None

    @property
    def small(self) -> bool:
        """Whether some rate of it rests on too few subjects."""
        return any(rate.small for rate in self.rates.values())


@dataclass(frozen=True)
class GroupTable:
    """All groups, the rates of everybody, and how unequal the groups are."""

    rows: tuple[GroupRow, ...]
    everybody: GroupRow
    worst: Mapping[str, WorstRatio]
    smallest: int
    level: float
    guarantee: Guarantee | None = None

    def __getitem__(self, group: object) -> GroupRow:
        for row in self.rows:
            if row.group == group:
                return row
        raise InvalidInputError(f"no group {group!r}; there are {', '.join(repr(row.group) for row in self.rows)}")

    @property
    def flagged(self) -> list[Any]:
        """The groups with a rate that rests on too few subjects."""
        return [row.group for row in self.rows if row.small]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "groups": [_plain(row) for row in self.rows],
            "everybody": _plain(self.everybody),
            "worst_ratio": {name: asdict(ratio) for name, ratio in self.worst.items()},
            "smallest": self.smallest,
            "level": self.level,
            "flagged": self.flagged,
            "guarantee": None if self.guarantee is None else asdict(self.guarantee),
        }

    def __str__(self) -> str:
        head = ["group", "probes", "subjects", "FPIR", "FNIR", "filtered"]
        if self.guarantee is not None:
            head.append(f"{self.guarantee.risk} at most")
        cells = [head, *(_cells(row) for row in (*self.rows, self.everybody))]
        width = [max(len(row[i]) for row in cells) for i in range(len(head))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, width)).rstrip() for row in cells]
        lines += [ratio_line(ratio) for ratio in self.worst.values()]
        notes = [
            f"{row.group}: {name} {rate.note}" for row in self.rows for name, rate in row.rates.items() if rate.note
        ]
        if notes:
            lines += [f"* fewer than {self.smallest} subjects, or undefined:", *(f"  {note}" for note in notes)]
        return "\n".join(lines)


def group_rates(
    group: ArrayLike,
    outcomes: Outcomes,
    *,
    filtered: ArrayLike | None = None,
    rng: np.random.Generator | int,
    smallest: int = 20,
    n_resamples: int = 1000,
    level: float = 0.95,
    guarantee: Guarantee | None = None,
) -> GroupTable:
    """FPIR, FNIR and filtered share of each value of ``group``, with intervals, and the worst ratio of each rate.

    ``outcomes`` must name the subject of every probe. ``filtered`` marks the probes that were left undecided. With a
    ``guarantee`` each group also gets an upper confidence bound of that risk, at ``1 − δ/G`` for each of the G groups, so that
    all of them hold together.

    >>> rng = np.random.default_rng(0)
    >>> sex, mated = np.repeat(["f", "m"], 200), np.tile([True, False], 200)
    >>> outcomes = Outcomes(mated, mated ^ (rng.random(400) < 0.1), mated, subject=np.arange(400))
    >>> table = group_rates(sex, outcomes, rng=0)
    >>> [(row.group, row.rates["fnir"].n_probes) for row in table.rows]
    [('f', 100), ('m', 100)]
    """
    if isinstance(smallest, bool) or not isinstance(smallest, int | np.integer) or smallest < 2:
        raise InvalidParameterError(f"smallest must be a whole number of at least 2 subjects, got {smallest!r}")
    check_share("level", level)
    if outcomes.subject is None:
        raise InvalidInputError(
            "outcomes must name the subject of every probe: intervals resample subjects, not probes"
        )
    labels = as_subjects(group, field="group")
    undecided = np.zeros(len(outcomes), dtype=bool) if filtered is None else flags("filtered", filtered)
    same_length(group=labels, mated=outcomes.mated, filtered=undecided)
    resamples = SubjectBootstrap.draw(outcomes.subject, n_resamples=n_resamples, rng=rng)
    names, code = np.unique(labels, return_inverse=True)
    masks = [*(code == i for i in range(len(names))), np.ones(len(outcomes), dtype=bool)]
    tables = {name: SubjectRates.of(*_terms(name, outcomes, undecided), masks, resamples) for name in RATES}
    rows = [
        GroupRow(
            name.item() if isinstance(name, np.generic) else name,
            int(mask.sum()),
            len(np.unique(resamples.cluster[mask])),
            {rate: tables[rate].rate(i, int(smallest), level) for rate in RATES},
            None if guarantee is None else _bound(guarantee, outcomes, undecided, mask, resamples.cluster, len(names)),
        )
        for i, (name, mask) in enumerate(zip([*names, "everybody"], masks))
    ]
    worst = {rate: _worst(rate, rows[:-1], tables[rate], level) for rate in RATES}
    return GroupTable(tuple(rows[:-1]), rows[-1], worst, int(smallest), level, guarantee)


def _terms(rate: str, outcomes: Outcomes, filtered: BoolArray) -> tuple[BoolArray, BoolArray]:
    if rate == "filtered_share":
        return np.ones_like(filtered), filtered
    counted, wrong = risk_columns(rate, outcomes.mated, outcomes.accepted, outcomes.correct_subject)
    return counted & ~filtered, wrong


def _worst(name: str, rows: list[GroupRow], table: SubjectRates, level: float) -> WorstRatio:
    able = [i for i, row in enumerate(rows) if not row.rates[name].small]
    if len(able) < 2:
        note = f"{len(able)} of {len(rows)} groups are large enough to compare; it takes two"
        return WorstRatio(name, None, None, None, None, None, note)
    values = [rows[i].rates[name].value or 0.0 for i in able]
    top, bottom = able[int(np.argmax(values))], able[int(np.argmin(values))]
    highest, lowest = rows[top].group, rows[bottom].group
    if min(values) == 0:
        note = "no group has any" if max(values) == 0 else f"{lowest} has none, so there is no ratio"
        return WorstRatio(name, highest, lowest, None, None, None, note)
    ratios = quotients(table.replicates(top), table.replicates(bottom))
    low, high = percentiles(ratios, level)
    missing = float(np.mean(~np.isfinite(ratios)))
    caution = f"{missing:.0%} of the resamples have no ratio: too few errors in {lowest}" if missing > 0.05 else None
    return WorstRatio(name, highest, lowest, max(values) / min(values), low, high, caution)


def _bound(
    guarantee: Guarantee,
    outcomes: Outcomes,
    filtered: BoolArray,
    mask: BoolArray,
    cluster: NDArray[np.int64],
    n_groups: int,
) -> GroupBound:
    check_unit(guarantee.unit)
    target = check_share("target_level", guarantee.target_level)
    delta = (1 - check_share("confidence_level", guarantee.confidence_level)) / n_groups
    counted, wrong = risk_columns(guarantee.risk, outcomes.mated, outcomes.accepted, outcomes.correct_subject)
    rows = np.flatnonzero(mask & counted)
    unit = np.arange(len(rows)) if guarantee.unit == "probe" else np.unique(cluster[rows], return_inverse=True)[1]
    # Decided probes count as quality 1, filtered ones as 0: the bound is then at threshold ½.
    decisions = Decisions((~filtered[rows]).astype(np.float64), wrong[rows], unit.astype(np.int64))
    upper = 1.0
    if len(rows):
        upper = chosen_test(decisions).upper_bound(*decisions.shares(0.5), 1 - delta)
    n_wrong = int((wrong & ~filtered)[rows].sum())
    return GroupBound(int((~filtered[rows]).sum()), n_wrong, upper, upper <= target)


def _plain(row: GroupRow) -> dict[str, Any]:
    return {**asdict(row), "small": row.small}


def _cells(row: GroupRow) -> list[str]:
    cells = [f"{row.group}{'*' if row.small else ''}", str(row.n_probes), str(row.n_subjects)]
    for rate in row.rates.values():
        cells.append("-" if rate.value is None else f"{rate.value:.4f}")
        if rate.low is not None and rate.high is not None:
            cells[-1] += f" ({rate.low:.4f} to {rate.high:.4f})"
    if row.bound is not None:
        cells.append(f"{row.bound.upper_bound:.4f} {'certified' if row.bound.certified else 'not certified'}")
    return cells


def ratio_line(ratio: WorstRatio) -> str:
    """A worst ratio, or why there is none, in words."""
    if ratio.value is None:
        return f"worst ratio of {ratio.rate}: none ({ratio.note})"
    interval = "" if ratio.low is None or ratio.high is None else f" ({ratio.low:.2f} to {ratio.high:.2f})"
    note = f" ({ratio.note})" if ratio.note else ""
    return f"worst ratio of {ratio.rate}: {ratio.value:.2f}{interval}, {ratio.highest} over {ratio.lowest}{note}"
