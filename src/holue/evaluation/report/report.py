"""Report: an evaluation as a folder with the numbers, the tables, the figures and one page to read.

OUT/results.json        every number with its interval, the configuration, versions and seeds
OUT/outcomes.parquet    a row per probe and operating point
OUT/tables/             .md, .csv, .tex
OUT/figures/            .png, .svg
OUT/report.html         one self-contained page
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holue.artifact import whole_folder
from holue.evaluation.comparison.headline import missed
from holue.evaluation.comparison.methods import grouped_reasons
from holue.evaluation.comparison.outcome_table import KIND_NAMES, write_outcomes
from holue.evaluation.comparison.results import FORMAT, MethodResult, PointResult, Results, results_json
from holue.evaluation.outcomes import OutcomeKind
from holue.evaluation.report.drawing import Drawing
from holue.evaluation.report.figures import all_figures, page_panels
from holue.evaluation.report.page_template import filled_page
from holue.evaluation.report.result_folder import RESULTS_FILE, check_result_folder
from holue.evaluation.report.tables import Table, all_tables
from holue.evaluation.report.trust_tables import trust_tables
from holue.recognition.quality import SCORES

logger = logging.getLogger(__name__)
MOST_UNCERTAIN = 20
_RIGHT = (OutcomeKind.TRUE_POSITIVE, OutcomeKind.TRUE_NEGATIVE)


def write_report(results: Results, folder: str | Path, *, command: str = "") -> Path:
    """Write the whole report, all or nothing; an earlier report there is replaced, anything else is refused.

    ``command`` is what to run to get the same report again, for the page.
    """
    folder = Path(folder)
    check_destination(folder)
    with whole_folder(folder) as partial:
        (partial / "tables").mkdir()
        (partial / "figures").mkdir()
        _fill(results, partial, command)
    logger.info("report written to %s", folder)
    return folder


def check_destination(folder: str | Path) -> None:
    """Refuse to write a report over anything but an earlier report or an empty folder; cheap, so ask before the work."""
    check_result_folder(Path(folder), format=FORMAT, what="report")


def report_page(results: Results, tables: list[Table], figures: list[Drawing], command: str = "") -> str:
    """The page, with the figures inside it: it asks nothing of the network."""
    first = results.points[0]
    judged = next(iter(first.ranked), None) or next((r for r in first.methods if r.quality is not None), None)
    return filled_page(
        "holue.evaluation.report",
        "report",
        figures=figures,
        results=results,
        document=results.document(),
        tables={table.name: table for table in tables},
        uncertain=[] if judged is None else most_uncertain(results, first, judged),
        judged=judged,
        not_evaluated=grouped_reasons(results.skipped),
        first=first,
        missed=any(missed(point) for point in results.points),
        trust=results.trust,
        method_names={key: score.name for key, score in SCORES.items()},
        command=command,
    )


@dataclass(frozen=True)
class UncertainProbe:
    """One of the least reliable answers, with what the gallery said."""

    probe: str
    truth: str
    answer: str
    outcome: str
    right: bool
    quality: float
    p_unknown: float
    candidates: tuple[tuple[str, float, float], ...]  # subject, cosine, probability


def most_uncertain(results: Results, point: PointResult, judged: MethodResult) -> list[UncertainProbe]:
    """The probes of lowest quality by one method, the most uncertain first."""
    assert judged.quality is not None
    part, outcomes = results.protocol.evaluation, point.outcomes
    names = part.probe_names

    def describe(row: int) -> UncertainProbe:
        best = part.gallery.names(results.top_index[row][:3])
        kind = int(outcomes.kind[row])
        return UncertainProbe(
            probe=names[row],
            truth=str(part.probe_subjects[row]) if outcomes.mated[row] else "nobody enrolled",
            answer=str(best[0]) if outcomes.accepted[row] else "nobody enrolled",
            outcome=KIND_NAMES[kind].replace("_", " "),
            right=kind in _RIGHT,
            quality=float(judged.quality[row]),  # type: ignore[index]
            p_unknown=float(point.probabilities.nobody[row]),
            candidates=tuple(
                (
                    str(subject),
                    float(results.top_scores[row, rank]),
                    float(point.probabilities.candidates[row, rank]),
                )
                for rank, subject in enumerate(best)
            ),
        )

    order = np.argsort(judged.quality, kind="stable")[:MOST_UNCERTAIN]
    return [describe(int(row)) for row in order]


def _fill(results: Results, folder: Path, command: str) -> None:
    tables = [*all_tables(results), *trust_tables(results)]
    figures = all_figures(results)
    (folder / RESULTS_FILE).write_text(results_json(results), "utf-8")
    write_outcomes(results, folder / "outcomes.parquet")
    for table in tables:
        for suffix, text in (("md", table.markdown()), ("csv", table.csv()), ("tex", table.tex())):
            (folder / "tables" / f"{table.name}.{suffix}").write_text(text, "utf-8")
    for figure in figures:
        figure.save(folder / "figures")
    (folder / "report.html").write_text(
        report_page(results, tables, [*figures, *page_panels(results)], command), "utf-8"
    )
