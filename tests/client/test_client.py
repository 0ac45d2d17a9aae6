"""The client: errors as they are locally, changes that are made once, and both ways of sending."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import numpy as np
import pytest

from holue import errors
from holue.client import AsyncClient, Client
from holue.client.calls import Calls
from holue.client.problems import KINDS, ServiceError
from holue.service.http.problems import STATUS


def answering(*replies: Any) -> tuple[list[httpx.Request], Any]:
    """A service that gives these replies, one after the other; an exception is raised in place of one."""
    seen: list[httpx.Request] = []
    waiting = list(replies)

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(*reply[:1], json=reply[1], headers=reply[2] if len(reply) > 2 else None)

    return seen, httpx.MockTransport(handle)


def client(transport: Any) -> Client:
    return Client("http://service", key="hk_1", gallery="office", transport=transport)


CHANGED = {"gallery": "office", "version": 3, "operation": "office.3", "subjects": [1], "samples": [1]}


def test_every_problem_that_is_an_error_of_holue_is_that_error() -> None:
    for error, (_, kind, _) in STATUS.items():
        if kind in KINDS:
            assert issubclass(error, KINDS[kind]) or issubclass(KINDS[kind], error), kind


def test_a_refusal_is_the_error_that_a_local_gallery_raises() -> None:
    problem = {"type": "urn:holue:problem:invalid-embeddings", "detail": "row 0 is zero; embed again", "status": 422}
    with pytest.raises(errors.InvalidEmbeddingsError, match="row 0 is zero"):
        client(answering((422, problem))[1]).identify(np.ones((1, 4)))
    unknown = {"type": "urn:holue:problem:something-new", "detail": "no"}
    with pytest.raises(ServiceError, match="no") as caught:
        client(answering((418, unknown))[1]).status()
    assert caught.value.status == 418
    with pytest.raises(ServiceError, match="502"):
        client(answering((502, "a proxy's page"))[1]).status()


def test_the_way_out_of_a_problem_is_in_the_error() -> None:
    for kind, error in (("not-found", errors.NotFoundError), ("too-many-candidates", ServiceError)):
        problem = {
            "type": f"urn:holue:problem:{kind}", "detail": "that is too much",
            "errors": [{"way_out": "ask for fewer"}, {"way_out": None}, {"way_out": "ask for fewer"}, "?"],
        }  # fmt: skip
        with pytest.raises(error, match=r"^that is too much; ask for fewer$"):
            client(answering((422, problem))[1]).status()
    said = {"type": "urn:holue:problem:conflict", "detail": "no; wait", "errors": [{"way_out": "wait"}]}
    with pytest.raises(errors.ConflictError, match=r"^no; wait$"):
        client(answering((409, said))[1]).status()


def test_a_change_is_sent_again_under_the_same_name_after_a_lost_connection() -> None:
    seen, transport = answering(httpx.ReadError("gone"), (503, {}, {"retry-after": "0"}), (201, CHANGED))
    assert client(transport).enroll(np.ones((1, 4)), ["ann"]).version == 3
    assert len({request.headers["Idempotency-Key"] for request in seen}) == 1
    assert len(seen) == 3


def test_what_cannot_be_repeated_is_sent_once() -> None:
    seen, transport = answering(httpx.ReadError("gone"), (200, CHANGED))
    with pytest.raises(errors.StoreUnavailableError, match="cannot be reached"):
        client(transport).remove("ann")
    assert len(seen) == 1


def test_rows_come_back_in_the_order_they_were_given() -> None:
    seen, transport = answering((201, {**CHANGED, "subjects": [1, 1, 2], "samples": [1, 2, 3]}))
    enrolled = client(transport).enroll(np.eye(3, 4), ["ann", "bob", "ann"])
    sent = json.loads(seen[0].content)["subjects"]
    assert [(each["id"], len(each["samples"])) for each in sent] == [("ann", 2), ("bob", 1)]
    assert enrolled.subjects.tolist() == [1, 2, 1]
    assert enrolled.samples.tolist() == [1, 3, 2]


def test_a_list_is_read_page_after_page() -> None:
    first: dict[str, Any] = {
        "samples": [{"number": 1}],
        "calibrations": [{"number": 1}],
        "snapshots": [{"name": "a"}],
        "next": "WzFd",
    }
    last: dict[str, Any] = {
        "samples": [{"number": 2}],
        "calibrations": [{"number": 2}],
        "snapshots": [{"name": "b"}],
        "next": None,
    }
    for verb, given in (("samples", ["ann"]), ("calibrations", []), ("snapshots", [])):
        seen, transport = answering((200, first), (200, last))
        assert getattr(client(transport), verb)(*given) == [*first[verb], *last[verb]]
        assert [request.url.params.get("cursor") for request in seen] == [None, "WzFd"]

        assert asyncio.run(_awaited(answering((200, first), (200, last))[1], verb, *given)) == [
            *first[verb],
            *last[verb],
        ]


async def _awaited(transport: Any, verb: str, *given: Any) -> Any:
    async with AsyncClient("http://service", key="hk_1", gallery="office", transport=transport) as far:
        return await getattr(far, verb)(*given)


def test_probes_travel_in_the_form_that_keeps_their_bits() -> None:
    seen, transport = answering((200, {"answers": [{}, {}]}))
    gallery = client(transport)
    rows = np.random.default_rng(0).standard_normal((2, 4))
    for X, kappa, kind in [
        (rows, None, "application/x-npy"), (rows.astype(np.float32), None, "application/octet-stream"),
        (rows, [0.1, 0.2], "application/x-npy"), (rows.astype(np.float32), [2.0, 3.0], "application/octet-stream"),
        (rows.astype(np.float32), [0.1, 0.2], "application/json"),
    ]:  # fmt: skip
        gallery.identify_documents(X, kappa)
        assert seen[-1].headers["content-type"] == kind


def test_wrong_arguments_are_refused_before_anything_is_sent() -> None:
    seen, transport = answering((200, {}))
    gallery = client(transport)
    with pytest.raises(errors.InvalidEmbeddingsError):
        gallery.identify([1.0, 2.0])
    with pytest.raises(errors.InvalidConcentrationError):
        gallery.identify(np.ones((2, 4)), [1.0])
    with pytest.raises(errors.InvalidSubjectsError):
        gallery.enroll(np.ones((2, 4)), ["ann"])
    assert seen == []


def test_rows_of_another_length_that_the_service_cut_differently_are_an_error() -> None:
    reply = (200, {"answers": [{}] * 3})  # six rows of two float32 numbers are the bytes of three rows of four
    with pytest.raises(errors.InvalidEmbeddingsError, match="6 probes of 2 numbers"):
        client(answering(reply)[1]).identify_documents(np.ones((6, 2), np.float32))


def test_both_clients_have_the_same_verbs() -> None:
    verbs = {name for name in vars(Calls) if not name.startswith("_")}
    for kind in (Client, AsyncClient):
        assert verbs <= set(vars(kind)), kind


def test_the_asynchronous_client_does_the_same() -> None:
    seen, transport = answering(httpx.ReadError("gone"), (201, CHANGED))

    async def run() -> int:
        async with AsyncClient("http://service", key=None, gallery="a/b", transport=transport) as gallery:
            return (await gallery.enroll(np.ones((1, 4)), ["ann"])).version

    assert asyncio.run(run()) == 3
    assert seen[-1].url.raw_path == b"/v1/galleries/a%2Fb/subjects"
    assert "x-api-key" not in seen[-1].headers


def test_a_list_is_not_taken_for_the_id_of_a_subject() -> None:
    seen, transport = answering((200, CHANGED))
    for several in (["ann"], ("ann", "bob"), None, 1.5):
        with pytest.raises(errors.InvalidSubjectsError, match="one subject at a time, by its id, got "):
            client(transport).remove(several)  # type: ignore[arg-type]
    assert not seen
    assert client(transport).remove(np.int64(7)) == 3
