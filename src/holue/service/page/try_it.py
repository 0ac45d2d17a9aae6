"""TryIt: what the gallery of the demo believes about a picture, in words and bars for the page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from holue.datasets.glyphs.rendering import SIZE, Pixels
from holue.errors import InvalidInputError
from holue.recognition.answer.identifications import ACCEPTED, FILTERED, Identification, Identifications
from holue.service.page.playground import Damage, Playground

SHOWN = 4
"""Candidates with a bar; the next bar is nobody's."""
CLEAR = 0.1
"""An example is clear where its uncertainty is below this."""

PAIRS = 40
"""Pairs of look-alikes that are tried for an example."""

Identify = Callable[[Pixels], Identifications]
"""Images (n, 32, 32) to answers with at least ``SHOWN`` candidates."""


class TryRequest(BaseModel):
    """A picture to answer about: drawn, chosen or morphed, then spoiled."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    kind: Literal["draw", "choose", "morph"]
    pixels: str | None = Field(
        None, max_length=2 * SIZE * SIZE, description="What was drawn: 1 024 grey bytes in base64."
    )
    first: str | None = Field(
        None, max_length=8, description="The character that is chosen, or that a morph starts from."
    )
    second: str | None = Field(None, max_length=8, description="The character that a morph ends in.")
    position: float = Field(0.5, ge=0, le=1)
    size: int = Field(SIZE, ge=4, le=SIZE)
    blur: float = Field(0, ge=0, le=8)
    noise: float = Field(0, ge=0, le=255)
    cover: float = Field(0, ge=0, le=0.9)


@dataclass(frozen=True)
class Example:
    """A button of the page, and the request it makes."""

    name: str
    request: dict[str, Any]
    caption: str  # what it shows, in a sentence


@dataclass(frozen=True, eq=False)
class TryIt:
    """The demo's playground with the gallery that answers."""

    playground: Playground
    identify: Identify
    gallery: str  # the name of the gallery that answers

    def answer(self, request: TryRequest) -> dict[str, Any]:
        """The picture as the model sees it, the verdict, the reason, and a bar for each possibility."""
        image = Damage(request.size, request.blur, request.noise, request.cover).apply(self._picture(request))
        answer = self.identify(image[None])[0]
        bars = [
            {
                "name": str(candidate.subject),
                "probability": candidate.probability,
                "image": self._enrolled(candidate.subject),
            }
            for candidate in answer.candidates[:SHOWN]
        ]
        nobody = {"name": "nobody", "probability": answer.p_unknown, "image": None, "nobody": True}
        return {
            "image": encoded(image),
            "decision": answer.decision,
            "verdict": verdict(answer),
            "reason": sentence(answer),
            "possibilities": [*bars, nobody],
        }

    @cached_property
    def examples(self) -> list[Example]:
        """Four things to try, found among the glyphs: a clear one, the same one poor, a look-alike, a stranger."""
        labels = [glyph.label for glyph in self.playground.enrolled]
        known = self.identify(self._all_chosen(labels))
        right = np.array([bool(known.accepted[i]) and known.subject[i] == label for i, label in enumerate(labels)])
        order = np.argsort(np.where(right, known.uncertainty, np.inf), kind="stable")
        letter = _familiar([labels[i] for i in order if known.uncertainty[i] < CLEAR] or [labels[order[0]]])
        others = [glyph.label for glyph in self.playground.strangers]
        strangers = self.identify(self._all_chosen(others))
        surest = np.argsort(np.where(strangers.rejected, strangers.uncertainty, np.inf), kind="stable")
        first, second = self._look_alikes(known)
        return [
            Example(
                "A clear picture",
                {"kind": "choose", "first": letter},
                "A clear picture of one that it knows: it is sure.",
            ),
            Example(
                "A poor picture",
                {"kind": "choose", "first": letter, "size": self._too_small(letter)},
                "The same with few pixels: perhaps that one, perhaps nobody it knows, so it does not decide.",
            ),
            Example(
                "Between two",
                {"kind": "morph", "first": first, "second": second, "position": 0.5},
                "A sharp picture between two that it knows: it names both and does not decide.",
            ),
            Example(
                "A stranger",
                {"kind": "choose", "first": _familiar([others[i] for i in surest])},
                "One that it was never shown: it says so, and does not name the most similar.",
            ),
        ]

    def _too_small(self, label: str) -> int:
        """The largest size at which the picture of a glyph is too uncertain to decide, or else the smallest tried."""
        image, sizes = self.playground.chosen(label), range(SIZE, 4, -1)
        answers = self.identify(np.stack([Damage(size).apply(image) for size in sizes]))
        return next((size for size, filtered in zip(sizes, answers.filtered) if filtered), sizes[-1])

    def _look_alikes(self, known: Identifications) -> tuple[str, str]:
        """Two enrolled glyphs, clear by themselves, whose morph is most like both; tried among the most similar pairs."""
        clear = {str(known.subject[i]) for i in np.flatnonzero(known.accepted & (known.uncertainty < 2 * CLEAR))}
        closest = np.argsort(-known.candidate_scores[:, 1], kind="stable")
        similar = [(str(one), str(other)) for one, other in known.candidate_subjects[closest, :2].tolist()]
        drawn: list[tuple[tuple[str, str], Pixels]] = []
        for pair in [pair for pair in similar if clear.issuperset(pair)][:PAIRS]:
            with suppress(InvalidInputError):  # no font draws both
                drawn.append((pair, self.playground.morphed(*pair, 0.5)))
        if not drawn:
            return similar[0]
        answers = self.identify(np.stack([image for _, image in drawn]))
        shares = [{each.subject: each.probability for each in answer.candidates} for answer in answers]
        both = [min(share.get(pair[0], 0.0), share.get(pair[1], 0.0)) for share, (pair, _) in zip(shares, drawn)]
        return drawn[int(np.argmax(both))][0]

    def _all_chosen(self, labels: list[str]) -> Pixels:
        return np.stack([self.playground.chosen(label) for label in labels])

    def _picture(self, request: TryRequest) -> Pixels:
        if request.kind == "draw":
            try:
                return self.playground.drawn(base64.b64decode(request.pixels or "", validate=True))
            except (binascii.Error, ValueError) as error:
                raise InvalidInputError(f"pixels must be base64 of 1 024 bytes ({error}); reload the page") from error
        if request.first is None or (request.kind == "morph" and request.second is None):
            raise InvalidInputError(f"a request of kind {request.kind!r} needs its characters; choose one on the page")
        if request.kind == "choose":
            return self.playground.chosen(request.first)
        return self.playground.morphed(request.first, str(request.second), request.position)

    def _enrolled(self, label: object) -> str:
        return encoded(self.playground.chosen(str(label)))


def verdict(answer: Identification) -> str:
    """The decision as a sentence with a sign, so that its colour is not needed."""
    if answer.decision == ACCEPTED:
        return f"✓ This is {answer.subject}"
    if answer.decision == FILTERED:
        return "? Too uncertain to decide"
    return "∅ Nobody in the gallery"


def sentence(answer: Identification) -> str:
    """The chance of being wrong, and the reason where there is one to name."""
    wrong = f"Chance of being wrong: {answer.uncertainty:.2f}."
    return wrong if answer.reason in ("", "clear") else f"{wrong} {answer.reason[0].upper()}{answer.reason[1:]}."


def encoded(image: Pixels) -> str:
    """Grey bytes in base64, row by row."""
    return base64.b64encode(image.tobytes()).decode("ascii")


def _familiar(labels: list[str]) -> str:
    """The first letter that everybody knows, or else the first."""
    return next((label for label in labels if label.isascii() and label.isalpha()), labels[0])
