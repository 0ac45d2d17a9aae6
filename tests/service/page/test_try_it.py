"""Try it: the picture and the answer that belongs to it."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from holue.errors import InvalidInputError
from holue.service.page.playground import Damage
from holue.service.page.try_it import TryIt, TryRequest
from holue.service.service import Service


@pytest.fixture
def try_it(service: Service) -> TryIt:
    assert service.try_it is not None
    return service.try_it


def test_the_examples_show_what_they_say(try_it: TryIt) -> None:
    clear, poor, between, stranger = (try_it.answer(TryRequest(**each.request)) for each in try_it.examples)
    assert clear["decision"] == "accepted"
    assert (
        poor["decision"] != "accepted"
        or poor["possibilities"][0]["probability"] < clear["possibilities"][0]["probability"]
    )
    shares = sorted(each["probability"] for each in between["possibilities"] if not each.get("nobody"))
    assert shares[-2] > 0.1, "two candidates share the morph"
    assert stranger["decision"] == "rejected"
    assert stranger["possibilities"][-1]["nobody"]


def test_a_drawing_that_is_a_printed_character_gets_its_answer(try_it: TryIt) -> None:
    label = try_it.playground.enrolled[7].label
    pixels = base64.b64encode(try_it.playground.chosen(label).tobytes()).decode()
    drawn = try_it.answer(TryRequest(kind="draw", pixels=pixels))
    assert drawn == try_it.answer(TryRequest(kind="choose", first=label))


def test_probabilities_of_the_bars_do_not_exceed_one(try_it: TryIt) -> None:
    for glyph in try_it.playground.enrolled[::10]:
        bars = try_it.answer(TryRequest(kind="choose", first=glyph.label, size=12))["possibilities"]
        assert 0 <= sum(bar["probability"] for bar in bars) <= 1 + 1e-9


@pytest.mark.parametrize(
    "request_",
    [
        {"kind": "draw"}, {"kind": "draw", "pixels": "####"}, {"kind": "draw", "pixels": "AAAA"}, {"kind": "choose"},
        {"kind": "choose", "first": "no such"}, {"kind": "morph", "first": "a"},
    ],
)  # fmt: skip
def test_a_request_that_makes_no_picture_is_explained(try_it: TryIt, request_: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=r"page|base64|1 024|characters"):
        try_it.answer(TryRequest(**request_))  # type: ignore[arg-type]


def test_the_same_sliders_give_the_same_picture() -> None:
    image = np.full((32, 32), 200, np.uint8)
    damage = Damage(size=10, noise=40, cover=0.2, seed=3)
    assert (damage.apply(image) == damage.apply(image)).all()
    assert (damage.apply(image) != image).any()
