"""Calibrations, reviews and strangers over HTTP: made beside each other, previewed, switched over; people decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .conftest import DIM, Api, People, Start

G = "/v1/galleries/office"


def development(people: People) -> dict[str, Any]:
    """Probes to calibrate on: of other people, some of whom are enrolled in a gallery of their own."""
    known = range(100, 160)
    mated = [people.samples(person, 2, seed=5) for person in known]
    strangers = [people.samples(person, 2, seed=5) for person in range(200, 300)]
    enrolled = [people.samples(person, 2) for person in known]
    names = [f"x{person}" for person in known for _ in range(2)]
    return {
        "source": "probes",
        "probes": np.concatenate([*mated, *strangers]).tolist(),
        "subjects": [*names, *[None] * 200],
        "gallery": {"embeddings": np.concatenate(enrolled).tolist(), "subjects": names},
    }


@pytest.fixture
def make(api: Api, people: People) -> Callable[..., str]:
    """Makes a gallery with twenty people and gives its path."""

    def made(**settings: Any) -> str:
        body = {"name": "lab", "dim": DIM, "method": "galue", "target_fpir": 0.05, **settings}
        assert api.post("/v1/galleries", json=body).status_code == 201
        enrol(api, "/v1/galleries/lab", people, range(20))
        return "/v1/galleries/lab"

    return made


def enrol(api: Api, gallery: str, people: People, persons: range) -> None:
    subjects = [
        {"id": f"p{person}", "samples": [{"embedding": row.tolist()} for row in people.samples(person, 2)]}
        for person in persons
    ]
    assert api.post(f"{gallery}/subjects", json={"subjects": subjects}).status_code == 201


def test_a_gallery_that_is_not_calibrated_says_so(api: Api, make: Callable[..., str], people: People) -> None:
    answer = api.post(f"{make()}/identify", json={"probes": people.samples(3, 1).tolist()})
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("not-calibrated")


def test_a_candidate_answers_only_once_it_is_activated(api: Api, make: Callable[..., str], people: People) -> None:
    lab = make()
    assert api.post(f"{lab}/calibrate", json=development(people)).json()["number"] == 1
    made = api.post(f"{lab}/calibrations", json=development(people))
    assert made.status_code == 201, made.text
    assert (made.json()["state"], made.json()["source"]) == ("candidate", "probes")
    probe = {"probes": people.samples(3, 1, seed=9).tolist()}
    answer = api.post(f"{lab}/identify", json=probe).json()["answers"][0]
    assert (answer["calibration"], answer["risk"]["kind"], answer["risk"]["target"]) == (1, "fpir", 0.05)
    preview = api.post(f"{lab}/calibrations/2/preview", json={})
    assert preview.status_code == 200, preview.text
    assert preview.json()["probes_from"] == "leave-one-out"
    assert preview.json()["changes"] == {}, "the same probes give the same calibration"
    assert api.post(f"{lab}/calibrations/2/activate").json()["state"] == "active"
    assert api.post(f"{lab}/identify", json=probe).json()["answers"][0]["calibration"] == 2
    listed = api.get(f"{lab}/calibrations").json()["calibrations"]
    assert [each["state"] for each in listed] == ["superseded", "active"]
    assert listed[1] == api.get(f"{lab}/calibrations/2").json()
    assert api.post(f"{lab}/calibrations/99/activate").status_code == 404


def test_a_calibration_says_when_the_gallery_has_outgrown_it(
    api: Api, make: Callable[..., str], people: People
) -> None:
    lab = make(hold="model")
    assert api.post(f"{lab}/calibrate", json=development(people)).status_code == 201
    enrol(api, lab, people, range(20, 400))
    told = api.get(lab).json()["calibration"]
    assert told["fits"] is False
    answer = api.post(f"{lab}/identify", json={"probes": people.samples(3, 1).tolist()}).json()["answers"][0]
    assert answer["risk"]["valid"] is False
    assert answer["risk"]["why_not"] == told["doubts"]
    assert "calibrate anew" in told["doubts"][0]
    metrics = api.get("/metrics").text
    assert 'holue_doubts{gallery="lab"} 1.0' in metrics


def test_settings_change_for_those_who_have_seen_them(api: Api, people: People) -> None:
    tag = api.get(G).headers["etag"]
    probe = {"probes": people.samples(3, 1, seed=9).tolist()}
    assert api.post(f"{G}/identify", json=probe).json()["answers"][0]["decision"] == "accepted"
    assert api.patch(G, json={"filter_below": 1e9}, headers={"if-match": tag}).status_code == 200
    assert api.post(f"{G}/identify", json=probe).json()["answers"][0]["decision"] == "filtered"
    assert api.patch(G, json={"filter_below": None}, headers={"if-match": tag}).status_code == 412
    assert api.patch(G, json={"filter_below": None}).json()["settings"]["filter_below"] is None
    assert api.post(f"{G}/identify", json=probe).json()["answers"][0]["decision"] == "accepted"
    assert api.patch(G, json={"method": "holue"}).status_code == 422


def test_a_filtered_answer_is_decided_by_people(api: Api, people: People) -> None:
    api.patch(G, json={"filter_below": 1e9})
    answer = api.post(f"{G}/identify", json={"probes": people.samples(3, 1, seed=9).tolist()}).json()["answers"][0]
    assert (answer["decision"], answer["subject"]) == ("filtered", None)
    review = answer["review_id"]
    ann = api.key("reviewer")
    item = api.post("/v1/reviews/claim", json={"gallery": "office"}, headers=ann).json()["review"]
    assert item["id"] == review
    assert item["candidates"][0]["subject"] == "p3"
    other = api.post(f"/v1/reviews/{review}/decision", json={"kind": "accept"}, headers=api.key("reviewer"))
    assert other.status_code == 409, "it is with another reviewer"
    not_this = api.post(f"/v1/reviews/{review}/decision", json={"kind": "not_this"}, headers=ann).json()
    assert "p3" not in [each["subject"] for each in not_this["candidates"]]
    api.delete(f"/v1/reviews/{review}/decision", headers=ann)
    decided = api.post(f"/v1/reviews/{review}/decision", json={"kind": "accept"}, headers=ann).json()
    assert (decided["state"], decided["shows"]) == ("decided", "p3")
    page = api.get("/v1/reviews?gallery=office&state=decided", headers=ann).json()
    assert page["counts"] == {"open": 0, "disputed": 0, "decided": 1}
    undone = api.delete(f"/v1/reviews/{review}/decision", headers=ann).json()
    assert (undone["state"], undone["shows"]) == ("open", None)
    assert api.post(f"/v1/reviews/{review}/decision", json={"kind": "other", "subject": 999}).status_code == 404
    assert api.get("/v1/reviews/office.99").status_code == 404


def test_the_promise_is_set_against_what_reviewers_found(start: Start, people: People) -> None:
    api = start(reviews={"share": 1.0})
    answers = api.post(f"{G}/identify", json={"probes": people.samples(3, 2, seed=9).tolist()}).json()["answers"]
    for answer in answers:
        api.post(f"/v1/reviews/{answer['review_id']}/decision", json={"kind": "accept"})
    found = api.get(f"{G}/promise").json()
    assert (found["answered"], found["reviewed"], found["wrong"], found["verdict"]) == (2, 2, 0, "no promise")
    assert found["lower"] == 0 < found["upper"] < 1


def test_strangers_are_not_kept_unless_that_is_set(start: Start, people: People) -> None:
    stranger = {"probes": people.samples(300, 2, seed=9).tolist()}
    api = start()
    assert [each["decision"] for each in api.post(f"{G}/identify", json=stranger).json()["answers"]] == ["rejected"] * 2
    assert api.get(f"{G}/strangers").json() == {"groups": [], "kept_days": 0.0}


def test_a_group_of_strangers_is_enrolled(start: Start, people: People) -> None:
    api = start(strangers={"days": 2.0})
    api.post(f"{G}/identify", json={"probes": people.samples(300, 2, seed=9).tolist()})
    groups = api.get(f"{G}/strangers").json()["groups"]
    assert [len(group["members"]) for group in groups] == [2]
    made = api.post(f"{G}/strangers/enroll", json={"members": groups[0]["members"], "subject": "eve"})
    assert made.status_code == 201, made.text
    assert api.get(f"{G}/strangers").json()["groups"] == []
    again = api.post(f"{G}/identify", json={"probes": people.samples(300, 1, seed=7).tolist()}).json()["answers"][0]
    assert again["subject"] == "eve"
