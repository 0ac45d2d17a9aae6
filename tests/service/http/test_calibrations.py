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


def certifying(people: People, persons: range, strangers: range) -> dict[str, Any]:
    """Labelled probes that no calibration was made from: of the enrolled, and of strangers."""
    mated = [people.samples(person, 4, seed=77) for person in persons]
    unknown = [people.samples(person, 1, seed=77) for person in strangers]
    return {
        "source": "probes",
        "probes": np.concatenate([*mated, *unknown]).tolist(),
        "subjects": [*(f"p{person}" for person in persons for _ in range(4)), *[None] * len(unknown)],
    }


def test_a_certified_risk_is_carried_by_the_answers(api: Api, make: Callable[..., str], people: People) -> None:
    lab = make()
    assert api.post(f"{lab}/calibrate", json=development(people)).status_code == 201
    body = {**certifying(people, range(20), range(300, 400)), "target": 0.1, "confidence": 0.9}
    made = api.post(f"{lab}/calibrations/1/certify", json=body)
    assert made.status_code == 201, made.text
    told = made.json()
    assert (told["number"], told["state"], made.headers["location"]) == (2, "candidate", f"{lab}/calibrations/2")
    certificate = told["certificate"]
    assert (certificate["risk"], certificate["target_level"], certificate["confidence_level"]) == ("error", 0.1, 0.9)
    assert certificate["n_probes"] == 180
    probe = {"probes": people.samples(3, 1, seed=9).tolist()}
    assert api.post(f"{lab}/identify", json=probe).json()["answers"][0]["risk"]["kind"] == "fpir", "not yet"
    tag = api.get(f"{lab}/calibrations").headers["etag"]
    assert api.post(f"{lab}/calibrations/2/activate", headers={"if-match": tag}).status_code == 200
    assert api.post(f"{lab}/calibrations/1/activate", headers={"if-match": tag}).status_code == 412
    answer = api.post(f"{lab}/identify", json=probe).json()["answers"][0]
    assert answer["risk"] == {"kind": "error", "target": 0.1, "confidence": 0.9, "valid": True, "why_not": []}
    assert api.get(f"{lab}/promise").json()["promised"] == 0.1
    assert [row["action"] for row in api.get("/v1/log?gallery=lab").json()["entries"]].count("certify") == 1


def test_a_risk_that_cannot_be_certified_says_how_many_more_probes_it_takes(
    api: Api, make: Callable[..., str], people: People
) -> None:
    lab = make()
    assert api.post(f"{lab}/calibrate", json=development(people)).status_code == 201
    few = {**certifying(people, range(3), range(300, 305)), "target": 0.05}
    refused = api.post(f"{lab}/calibrations/1/certify", json=few)
    assert refused.status_code == 422
    problem = refused.json()
    assert problem["type"].endswith("cannot-certify")
    assert problem["needed_without_error"] == 59  # 0.95^59 < 0.05
    assert problem["more_probes"] is None or problem["more_probes"] > 0
    assert "59 probes decided without an error" in problem["detail"]
    assert len(api.get(f"{lab}/calibrations").json()["calibrations"]) == 1
    again = api.post(f"{lab}/calibrations/1/certify", json={**development(people), "target": 0.2})
    assert again.status_code == 422
    assert "calibrated this recogniser" in again.json()["detail"], "not on the probes it was made from"
    nothing = api.post(f"{lab}/calibrations/1/certify", json={"target": 0.05})
    assert "no random sample of answers has been reviewed" in nothing.json()["detail"]


def test_a_risk_is_certified_from_what_reviewers_decided(start: Start, people: People) -> None:
    api = start(reviews={"share": 1.0})
    assert api.post(f"{G}/calibrate", json=development(people)).status_code == 201
    number = api.get(G).json()["calibration"]["number"]
    probes = np.concatenate([people.samples(person, 4, seed=9) for person in range(20)])
    for answer in api.post(f"{G}/identify", json={"probes": probes.tolist()}).json()["answers"]:
        kind = "accept" if answer["decision"] == "accepted" else "reject"
        assert api.post(f"/v1/reviews/{answer['review_id']}/decision", json={"kind": kind}).status_code == 200
    made = api.post(f"{G}/calibrations/{number}/certify", json={"target": 0.2, "confidence": 0.8})
    assert made.status_code == 201, made.text
    assert made.json()["certificate"]["n_probes"] == 80


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
    assert api.get(f"{G}/strangers").json() == {"groups": [], "next": None, "kept_days": 0.0}


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
