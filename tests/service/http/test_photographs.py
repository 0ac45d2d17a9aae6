"""Photographs as they come: faces are found, each is a probe; an enrolment says whose face is meant."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from holue.embedding.faces.measures import MEASURES
from holue.service.app import create_app
from holue.service.ledger.images import Of
from holue.service.ledger.ledger import erase_everywhere

BASE = "/v1/galleries/faces"


@pytest.fixture(scope="module")
def client(originals: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    service = originals.service(tmp_path_factory.mktemp("faces") / "galleries", limits={"pixels": 4_000_000})
    assert service.first_key is not None
    with TestClient(create_app(service=service), headers={"x-api-key": service.first_key.text}) as started:
        started.service = service  # type: ignore[attr-defined]
        originals.gallery(service, "faces", keep_images=False)
        for person in originals.PEOPLE:
            sent = files(*(originals.of(person, number) for number in (1, 2)))
            made = started.post(f"{BASE}/subjects/{person}/files", files=sent, data={"face": "central"})
            assert made.status_code == 201, made.text
        yield started
    service.close()


def files(*contents: bytes, name: str = "photo-{}") -> list[tuple[str, tuple[str, bytes]]]:
    return [(name.format(place), ("x.jpg", content)) for place, content in enumerate(contents)]


def identify(client: TestClient, sent: Any, **fields: Any) -> Any:
    answer = client.post(f"{BASE}/identify", files=sent, data=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_people_are_known_in_photographs_that_were_not_enrolled(client: TestClient, originals: Any) -> None:
    sent = [(person, ("x.jpg", originals.of(person, 4))) for person in originals.PEOPLE]
    found = identify(client, sent, face="central")
    best = [answer["candidates"][0]["subject"] for answer in found["answers"]]
    assert sum(one == other for one, other in zip(best, originals.PEOPLE)) >= len(originals.PEOPLE) - 1
    assert found["without_face"] == []


def test_every_face_of_a_photograph_is_a_probe_with_its_box_and_measures(client: TestClient, originals: Any) -> None:
    answers = identify(client, files(originals.read(originals.SEVERAL)))["answers"]
    assert len(answers) >= 3
    for number, answer in enumerate(answers, start=1):
        [face] = answer["faces"]
        assert (face["file"], face["number"]) == ("photo-0", number)
        assert set(face["measures"]) == set(MEASURES)
        x, y, width, height = face["box"]
        assert -20 <= x < x + width <= 270
        assert -20 <= y < y + height <= 270
    left = [answer["faces"][0]["box"][0] + answer["faces"][0]["box"][2] / 2 for answer in answers]
    assert left == sorted(left)
    assert answers[0]["candidates"] != answers[1]["candidates"]


def test_a_photograph_on_its_side_is_turned_as_exif_says(client: TestClient, originals: Any) -> None:
    from PIL import Image

    upright = Image.open(io.BytesIO(originals.of("Al_Gore", 3)))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    stream = io.BytesIO()
    upright.transpose(Image.Transpose.ROTATE_90).save(stream, "PNG", exif=exif)
    plain = io.BytesIO()
    upright.save(plain, "PNG")
    turned, straight = (
        identify(client, files(content), face="central")["answers"][0]
        for content in (stream.getvalue(), plain.getvalue())
    )
    assert turned["faces"] == straight["faces"]
    assert turned["score"] == straight["score"]


def test_photographs_of_one_name_are_one_probe(client: TestClient, originals: Any) -> None:
    several = files(originals.of("Al_Gore", 4), originals.of("Al_Gore", 5), name="followed")
    [answer] = identify(client, several, face="central")["answers"]
    assert len(answer["faces"]) == 2
    assert answer["subject"] == "Al_Gore"


def test_an_enrolment_says_which_face_is_meant(client: TestClient, originals: Any) -> None:
    address, sent = f"{BASE}/subjects/somebody/files", files(originals.read(originals.SEVERAL))
    refused = client.post(address, files=sent)
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:holue:problem:which-face")
    assert "1: " in refused.json()["detail"]
    assert "2: " in refused.json()["detail"]
    assert refused.json()["errors"][0]["field"] == "face"
    assert client.get(f"{BASE}/subjects/somebody").status_code == 404
    for wrong in ("0", "99", "nose"):
        assert client.post(address, files=sent, data={"face": wrong}).status_code == 422
    made = client.post(address, files=sent, data={"face": "2"})
    assert made.status_code == 201, made.text
    [best] = identify(client, sent, face="2")["answers"]
    assert best["candidates"][0]["subject"] == "somebody"
    assert best["score"] == pytest.approx(1, abs=1e-5)
    client.delete(f"{BASE}/subjects/somebody")


def test_a_photograph_without_a_face_is_named(client: TestClient, originals: Any) -> None:
    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (200, 200), "green").save(stream, "PNG")
    alone = client.post(f"{BASE}/identify", files=files(stream.getvalue()))
    assert (alone.status_code, alone.json()["type"]) == (422, "urn:holue:problem:no-face")
    found = identify(client, files(stream.getvalue(), originals.of("Al_Gore", 4)))
    assert found["without_face"] == ["photo-0"]
    assert {answer["faces"][0]["file"] for answer in found["answers"]} == {"photo-1"}
    enrolled = client.post(f"{BASE}/subjects/nobody/files", files=files(stream.getvalue()))
    assert enrolled.status_code == 422


def test_pixels_are_limited_before_they_are_decoded(client: TestClient) -> None:
    from PIL import Image

    for edge, said in ((3_000, "3000×3000"), (20_000, "not a readable image")):
        stream = io.BytesIO()
        Image.new("1", (edge, edge)).save(stream, "PNG")
        refused = client.post(f"{BASE}/identify", files=files(stream.getvalue()))
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:holue:problem:invalid-file")
        assert said in refused.json()["detail"]


def test_crops_are_kept_only_where_the_gallery_was_made_to_and_go_with_their_subject(
    originals: Any, tmp_path: Path
) -> None:
    service = originals.service(tmp_path / "galleries")
    assert service.first_key is not None
    with TestClient(create_app(service=service), headers={"x-api-key": service.first_key.text}) as client:
        model = service.embedder.model  # type: ignore[union-attr]
        for name, keep in (("kept", True), ("plain", False)):
            body = {
                "name": name, "dim": 512, "model": model, "method": "galue", "threshold": 0.4, "keep_images": keep,
            }  # fmt: skip
            made = client.post("/v1/galleries", json=body)
            assert made.json()["keep_images"] is keep, made.text
            address = f"/v1/galleries/{name}/subjects/ann/files"
            assert (
                client.post(address, files=files(originals.of("Al_Gore", 3)), data={"face": "central"}).status_code
                == 201
            )
        kept, plain = service.galleries.get("kept"), service.galleries.get("plain")
        number = kept.live.samples("ann")[0].number
        picture = kept.ledger.images.get(Of.SAMPLE, number)
        assert picture is not None
        assert picture.content.startswith(b"\x89PNG")
        assert plain.ledger.images.get(Of.SAMPLE, number) is None
        for each in (kept, plain):
            assert set(each.ledger.measures.of([number])[number]) == set(MEASURES)
        assert erase_everywhere(kept.live, kept.ledger, ["ann"]).clean
        assert kept.ledger.images.get(Of.SAMPLE, number) is None
        assert kept.ledger.measures.of([number]) == {}
    service.close()
