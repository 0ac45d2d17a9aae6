"""Trust tables: the three-way answers, candidate sets, reasons and groups of a trust study, as rows and columns."""

from __future__ import annotations

from holue.evaluation.comparison.results import Results
from holue.evaluation.deployment.groups import GroupRow, GroupTable, ratio_line
from holue.evaluation.deployment.main_reasons import MEANING
from holue.evaluation.deployment.set_coverage import SetCoverage
from holue.evaluation.deployment.three_way import ThreeWay
from holue.evaluation.deployment.trust import TrustReport
from holue.evaluation.deployment.trust_study import TrustStudy, what_would_do
from holue.evaluation.intervals.estimates import Estimate
from holue.evaluation.intervals.subject_rates import SubjectRate
from holue.evaluation.report.tables import DASH, Cell, Table

INTERVALS = "95% intervals over subjects"


def trust_tables(results: Results) -> list[Table]:
    """Every table that the study of these results has rows for."""
    study = results.trust
    if study is None or not study.reports or study.unfiltered is None:
        return []
    tables = [decision_table(study, study.unfiltered), set_table(study), reason_table(study)]
    grouped = study.grouped
    if grouped is not None:
        tables += [group_table(grouped, name, groups, _label(study)) for name, groups in grouped.groups.items()]
    return [table for table in tables if table.rows]


def decision_table(study: TrustStudy, unfiltered: ThreeWay) -> Table:
    """Accepted, rejected and filtered at every target, with the errors of each kind."""
    first = study.reports[0]
    rows = [("nothing filtered", "", unfiltered, first.unfiltered_risk)]
    units = {report.certificate.unit for report in study.reports if report.certificate is not None}
    by = f"by {units.pop()}" if units else "by subject"
    notes = []
    for report in study.reports:
        name = f"at most {report.target_level:g}"
        if report.certificate is None:
            notes.append(f"{name} cannot be certified: {what_would_do(report)}.")
        else:
            filtered = report.certificate.filter_below
            below = f"{filtered:.4g}" if filtered > -float("inf") else "nothing"
            last = rows[-1]
            if (below, report.three_way) == last[1:3]:
                # The same filter serves both targets: one row, not two alike.
                rows[-1] = (f"{last[0]}, {report.target_level:g}", *last[1:])
            else:
                rows.append((name, below, report.three_way, report.achieved_risk))
    return Table(
        "trust_decisions",
        f"{first.name}: decisions on the evaluation part where the rate of {first.risk} is certified at confidence "
        f"{first.confidence_level:g}; {INTERVALS}",
        _label(study),
        (
            "Certified",
            "Filter below",
            "Accepted",
            "Misidentified",
            "Strangers accepted",
            "Rejected",
            "Enrolled rejected",
            "Filtered",
            "Of these wrong",
            f"Rate of {first.risk}, {by}",
        ),
        tuple((name, (Cell(text=below), *_ways(ways), _cell(rate))) for name, below, ways, rate in rows),
        tuple(notes),
    )


def set_table(study: TrustStudy) -> Table:
    """Sizes and coverage of candidate sets."""

    def cells(sets: SetCoverage) -> tuple[Cell, ...]:
        shares = (sets.single, sets.with_unknown, sets.empty)
        mean = DASH if sets.mean_size is None else f"{sets.mean_size:.2f}"
        return (
            Cell(text=mean),
            *(Cell(text=DASH if share is None else f"{share:.1%}") for share in shares),
            *(Cell(text=DASH) if rate is None else _cell(rate) for rate in (sets.mated, sets.strangers)),
        )

    return Table(
        "trust_sets",
        f"{study.reports[0].name}: candidate sets on the evaluation part; {INTERVALS}",
        _label(study),
        ("Confidence", "Mean size", "One answer", "With unknown", "Empty", "Coverage, mated", "Coverage, strangers"),
        tuple((f"{sets.confidence_level:g}", cells(sets)) for sets in study.sets),
        tuple(f"{sets.confidence_level:g}: {sets.refusal}." for sets in study.sets if sets.refusal),
    )


def reason_table(study: TrustStudy) -> Table:
    """How many answers have each main cause."""
    reasons = study.reasons
    chosen = study.chosen
    counts = [] if reasons is None else [reasons.all, reasons.wrong, *([reasons.filtered] if chosen else [])]
    heads = ("All answers", "Wrong answers", f"Filtered at {chosen.target_level:g}" if chosen else "")
    return Table(
        "trust_reasons",
        f"{study.reports[0].name}: main cause of the uncertainty of an answer",
        _label(study),
        ("Cause", *heads[: max(len(counts), 2)]),
        tuple(
            (MEANING[cause], tuple(Cell(text=_counted(some[cause], sum(some.values()))) for some in counts))
            for cause in (MEANING if counts else ())
        ),
    )


def group_table(report: TrustReport, name: str, groups: GroupTable, label: str) -> Table:
    """Rates and guarantee of every group; small groups keep their row, marked."""
    risk = "" if groups.guarantee is None else f"{groups.guarantee.risk} at most"
    filtered = "nothing filtered" if report.certificate is None else f"certified at {report.target_level:g}"

    def cells(row: GroupRow) -> tuple[Cell, ...]:
        bound = row.bound
        told = DASH
        if bound is not None:
            told = f"{bound.upper_bound:.3f}{', certified' if bound.certified else ''}"
        return (
            Cell(text=str(row.n_subjects)),
            Cell(text=str(row.n_probes)),
            *(_cell(rate) for rate in row.rates.values()),
            Cell(text=told),
        )

    notes = [f"{ratio_line(ratio)}." for ratio in groups.worst.values()]
    if groups.guarantee is not None:
        confidence = groups.guarantee.confidence_level
        notes.append(f"The bounds hold for all groups together with confidence {confidence:g}.")
    if groups.flagged:
        notes.append(
            f"* some rate rests on fewer than {groups.smallest} subjects, or is undefined; it takes no part in the worst ratio."
        )
    return Table(
        f"trust_groups_{name}",
        f"{report.name}: automatic decisions by {name}, {filtered}; {INTERVALS}",
        label,
        ("Group", "Subjects", "Probes", "FPIR", "FNIR", "Filtered", risk),
        tuple((f"{row.group}{'*' if row.small else ''}", cells(row)) for row in (*groups.rows, groups.everybody)),
        tuple(notes),
    )


def _label(study: TrustStudy) -> str:
    return f"threshold for FPIR {study.target_fpir:g} from half of the development subjects"


def _ways(ways: ThreeWay) -> tuple[Cell, ...]:
    n = ways.total
    counts = (
        (ways.accepted, n),
        (ways.misidentifications, 0),
        (ways.false_acceptances, 0),
        (ways.rejected, n),
        (ways.false_rejections, 0),
        (ways.filtered, n),
        (ways.filtered_wrong, 0),
    )
    return tuple(Cell(text=f"{count / of:.1%}" if of else str(count)) for count, of in counts)


def _counted(count: int, of: int) -> str:
    return f"{count} ({count / of:.1%})" if of else str(count)


def _cell(rate: SubjectRate) -> Cell:
    return Cell(Estimate(rate.value, rate.low, rate.high, rate.note))
