"""ProbeCard: one probe with its picture, its candidates and what was decided about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holue.datasets.glyphs.fonts import find_font
from holue.datasets.glyphs.rendering import Pixels, render
from holue.demo.pictures import Picture, close_up, whole
from holue.demo.scene import Scene
from holue.evaluation.outcomes import OutcomeKind

VERDICTS = {
    OutcomeKind.TRUE_POSITIVE: "right",
    OutcomeKind.TRUE_NEGATIVE: "right: not enrolled",
    OutcomeKind.FALSE_ACCEPTANCE: "wrong: a stranger let in",
    OutcomeKind.FALSE_REJECTION: "wrong: enrolled, yet rejected",
    OutcomeKind.MISIDENTIFICATION: "wrong: taken for another",
}


@dataclass(frozen=True)
class CandidateRow:
    """One line of the distribution; without a picture it is "nobody enrolled"."""

    label: str
    name: str
    picture: Picture | None
    probability: float
    is_answer: bool
    is_truth: bool


@dataclass(frozen=True)
class ProbeCard:
    """What a person needs to judge one answer."""

    picture: Picture
    level: str
    font: str
    label: str
    name: str
    enrolled: bool
    clean_picture: Picture
    verdict: str
    right: bool
    uncertainty: float
    reason: str
    score: float
    candidates: tuple[CandidateRow, ...]


def probe_card(scene: Scene, row: int) -> ProbeCard:
    """The card of one probe of the evaluation part."""
    probes, outcomes, answer = scene.part.probes, scene.outcomes, scene.answers[row]
    label, kind = str(probes.subject_id[row]), OutcomeKind(int(outcomes.kind[row]))
    mated, accepted = bool(outcomes.mated[row]), bool(outcomes.accepted[row])
    lines = [
        CandidateRow(
            label=str(candidate.subject),
            name=scene.glyphs[str(candidate.subject)].name,
            picture=_clean_picture(scene, str(candidate.subject)),
            probability=candidate.probability,
            is_answer=accepted and place == 0,
            is_truth=mated and candidate.subject == label,
        )
        for place, candidate in enumerate(answer.candidates)
    ]
    lines.append(CandidateRow("", "nobody enrolled", None, answer.p_unknown, not accepted, not mated))
    return ProbeCard(
        picture=_probe_picture(scene, row),
        level=str(probes.level[row]),
        font=str(probes.font[row]),
        label=label,
        name=scene.glyphs[label].name,
        enrolled=mated,
        clean_picture=_clean_picture(scene, label),
        verdict=VERDICTS[kind],
        right=bool(outcomes.correct[row]),
        uncertainty=answer.uncertainty,
        reason=answer.reason,
        score=answer.score,
        candidates=tuple(lines),
    )


def _probe_picture(scene: Scene, row: int) -> Picture:
    """The sample, larger where the glyph is small; whole where something else in it, a patch that covers, is to be seen."""
    probes = scene.part.probes
    image: Pixels = probes.images[row]
    if "occlusion" in str(probes.level[row]):
        return whole(image)
    # Noise and blur hide where the glyph is; its clean drawing by the same font tells.
    glyph, font = scene.glyphs[str(probes.subject_id[row])], find_font(str(probes.font[row]))
    return close_up(image, render(glyph.drawn_by(font), font))


def _clean_picture(scene: Scene, label: str) -> Picture:
    clean = reference(scene, label)
    return close_up(clean, clean)


def reference(scene: Scene, label: str) -> Pixels:
    """The first enrolled sample of a glyph; of a stranger its printed form."""
    gallery = scene.part.gallery
    enrolled = np.flatnonzero(gallery.subject_id == label)
    if len(enrolled):
        first: Pixels = gallery.images[enrolled[0]]
        return first
    glyph = scene.glyphs[label]
    return render(glyph.drawn_by(glyph.fonts[0]), glyph.fonts[0])
