"""Groups follow from decisions and reasons, and cards say what was decided."""

import re

import numpy as np

from holue.demo.cards import probe_card
from holue.demo.demo import Demo
from holue.demo.groups import SHOWN


def test_every_probe_is_in_one_group_by_its_reason_strangers_let_in_apart(small_demo: Demo) -> None:
    groups = {group.key: group.rows for group in small_demo.groups}
    strangers = groups.pop("let-in", np.array([], dtype=np.int64))
    rows = np.concatenate(list(groups.values()))
    assert sorted(rows) == list(range(len(small_demo.scene.answers)))
    outcomes = small_demo.scene.outcomes
    assert sorted(strangers) == np.flatnonzero(~outcomes.mated & outcomes.accepted).tolist()


def test_groups_mean_what_their_titles_say(small_demo: Demo) -> None:
    scene = small_demo.scene
    for group in small_demo.groups:
        right, reasons = scene.outcomes.correct[group.rows], scene.answers.reason[group.rows]
        assert group.wrong == int((~right).sum())
        if group.key in ("confident", "unknown"):
            assert right.all()
        if group.key in ("let-in", "missed"):
            assert not right.any()
        starts = {
            "look-alikes": ("between",),
            "poor-samples": ("poor sample", "sample no better than usual"),
            "missed": ("clear",),
        }
        assert all(reason.startswith(starts.get(group.key, "")) for reason in reasons)
        for reason in reasons:
            if found := re.fullmatch(r"poor sample.*: concentration (\d+), typical (\d+)", reason):
                assert int(found[1]) <= 0.9 * int(found[2]) + 1, "the numbers beside it say so, too"


def test_cards_are_spread_from_the_most_to_the_least_certain(small_demo: Demo) -> None:
    for group in small_demo.groups:
        uncertainty = small_demo.scene.answers.uncertainty[group.shown]
        assert (np.diff(uncertainty) >= 0).all()
        assert len(group.shown) == min(SHOWN, len(group.rows))
        assert {group.rows[0], group.rows[-1]} <= set(group.shown)


def test_a_card_has_one_answer_and_bars_that_add_up(small_demo: Demo) -> None:
    scene = small_demo.scene
    for row in range(0, len(scene.answers), 37):
        card = probe_card(scene, row)
        answer = [line for line in card.candidates if line.is_answer]
        assert len(answer) == 1
        assert (answer[0].picture is None) == (not scene.outcomes.accepted[row])
        assert card.right == answer[0].is_truth
        assert card.verdict.startswith("right" if card.right else "wrong")
        assert card.enrolled == (card.label in {glyph.label for glyph in scene.part.known})
        assert sum(line.probability for line in card.candidates) <= 1 + 1e-9
        assert all(line.picture.address.startswith("data:image/png") for line in card.candidates if line.picture)
