"""Bodies that bite: each is answered with a problem, takes no memory in proportion to what it claims, and writes nothing."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from holue.service.demo import glyph_files
from holue.service.http.problems import Problem
from holue.service.settings import LimitSettings

from .conftest import DIM, Api, Start

IDENTIFY, ENROLL = "/v1/galleries/office/identify", "/v1/galleries/office/subjects"
JSON, NPY, RAW = "application/json", "application/x-npy", "application/octet-stream"
ROW = [0.5] * DIM


def header_of(shape: str, descr: str = "<f4") -> bytes:
    """The beginning of an .npy file that claims a shape."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (64 - (10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def pickled() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return stream.getvalue()


def zip_bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(20_000_000))
    return stream.getvalue()


def enrol(**change: Any) -> bytes:
    return json.dumps({"subjects": [{"id": "ann", "samples": [{"embedding": ROW}], **change}]}).encode()


BITES: list[tuple[str, str, str, bytes, int]] = [
    ("deep array", IDENTIFY, JSON, b"[" * 1_000_000, 400),
    ("deep object", IDENTIFY, JSON, b'{"a":' * 500_000, 400),
    ("deep metadata", ENROLL, JSON, enrol(metadata=json.loads("[" * 60 + "]" * 60)), 400),
    ("NaN", IDENTIFY, JSON, json.dumps({"probes": [[float("nan")] * DIM]}).encode(), 400),
    ("infinity", IDENTIFY, JSON, json.dumps({"probes": [[float("inf")] * DIM]}).encode(), 400),
    ("1e400", IDENTIFY, JSON, json.dumps({"probes": [ROW]}).replace("0.5", "1e400").encode(), 400),
    ("1e400 in metadata", ENROLL, JSON, enrol(metadata={"a": 1}).replace(b'{"a": 1}', b'{"a": 1e400}'), 400),
    ("beyond float32", IDENTIFY, JSON, json.dumps({"probes": [[1e300] * DIM]}).encode(), 422),
    ("long number", IDENTIFY, JSON, b'{"probes": [[' + b"9" * 100_000 + b"]]}", 400),
    ("zero", IDENTIFY, JSON, json.dumps({"probes": [[0.0] * DIM]}).encode(), 422),
    ("no probes", IDENTIFY, JSON, b'{"probes": []}', 422),
    ("wrong dimension", IDENTIFY, JSON, b'{"probes": [[1.0]]}', 422),
    ("ragged", IDENTIFY, JSON, json.dumps({"probes": [ROW, ROW[:-1]]}).encode(), 422),
    ("text for numbers", IDENTIFY, JSON, json.dumps({"probes": [["x"] * DIM]}).encode(), 422),
    ("too many probes", IDENTIFY, JSON, json.dumps({"probes": [ROW] * 4097}).encode(), 422),
    ("too many candidates", IDENTIFY, JSON, json.dumps({"probes": [ROW], "top_k": 9999}).encode(), 422),
    ("unknown field", IDENTIFY, JSON, json.dumps({"probes": [ROW], "probe": 1}).encode(), 422),
    ("concentrations too few", IDENTIFY, JSON, json.dumps({"probes": [ROW, ROW], "concentration": [1]}).encode(), 422),
    ("negative concentration", IDENTIFY, JSON, json.dumps({"probes": [ROW], "concentration": [-1]}).encode(), 422),
    ("not JSON", IDENTIFY, JSON, b"{", 400),
    ("no body", IDENTIFY, JSON, b"", 400),
    ("not UTF-8", IDENTIFY, JSON, b'{"probes": "\xff"}', 400),
    ("lone surrogate", ENROLL, JSON, enrol().replace(b"ann", b"\\ud800"), 400),
    ("NUL in a name", ENROLL, JSON, enrol().replace(b"ann", b"a\\u0000b"), 422),
    ("huge integer id", ENROLL, JSON, enrol(id=2**70), 422),
    ("boolean id", ENROLL, JSON, enrol(id=True), 422),
    ("empty id", ENROLL, JSON, enrol(id=""), 422),
    ("array of a billion", IDENTIFY, NPY, header_of(f"(1000000000, {DIM})"), 422),
    ("negative shape", IDENTIFY, NPY, header_of(f"(-1, {DIM})"), 422),
    ("shape that overflows", IDENTIFY, NPY, header_of("(9223372036854775807, 9223372036854775807)"), 422),
    ("pickle in .npy", IDENTIFY, NPY, pickled(), 422),
    ("pickle", IDENTIFY, NPY, pickle.dumps([1, 2]), 422),
    ("text array", IDENTIFY, NPY, header_of("(1, 16)", "<U1") + bytes(64), 422),
    ("zip bomb as .npy", IDENTIFY, NPY, zip_bomb(), 422),
    ("raw bytes, not whole", IDENTIFY, RAW, b"\0" * 63, 422),
    ("raw bytes, none", IDENTIFY, RAW, b"", 422),
    ("raw NaN", IDENTIFY, RAW, np.full(DIM, np.nan, "<f4").tobytes(), 422),
    ("unknown type", IDENTIFY, "text/html", b"<b>", 415),
    ("no type", IDENTIFY, "", b"{}", 415),
    ("files without embedder", IDENTIFY, "multipart/form-data; boundary=x", b"--x--\r\n", 415),
]  # fmt: skip


@pytest.mark.parametrize(("url", "kind", "body", "status"), [row[1:] for row in BITES], ids=[row[0] for row in BITES])
def test_a_body_that_bites_is_a_problem_and_writes_nothing(
    api: Api, url: str, kind: str, body: bytes, status: int
) -> None:
    opened = api.service.galleries.get("office")
    before = opened.live.version, opened.log.head()
    tracemalloc.start()
    answer = api.post(url, content=body, headers={"content-type": kind})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = Problem.model_validate(answer.json())
    assert problem.errors[0].rule
    assert problem.errors[0].way_out or status == 422
    assert (opened.live.version, opened.log.head()) == before
    # A JSON array of one-digit numbers takes about 16 bytes of Python objects for each byte of text.
    assert peak < 5_000_000 + 40 * len(body)


@pytest.mark.parametrize("piece", [b"[0]", b"0.5"], ids=["arrays", "numbers"])
def test_json_beyond_the_limit_of_probes_does_not_become_values(api: Api, piece: bytes) -> None:
    """They would take thirty times the memory of the text: 2 GB for a body as large as may be sent."""
    body = b'{"probes":[[' + b",".join([piece] * 500_000) + b"]]}"
    tracemalloc.start()
    answer = api.post(IDENTIFY, content=body, headers={"content-type": JSON})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status_code == 422, answer.text
    assert "more than 4096 probes" in answer.text
    assert peak < 5_000_000 + 4 * len(body)  # the text itself, as the test's client and the service hold it


def test_the_limit_of_a_body_holds_by_its_claim_and_while_it_arrives(start: Start) -> None:
    api = start(limits={"body_bytes": 2048})
    claimed = api.post(IDENTIFY, content=b"x", headers={"content-type": JSON, "content-length": "99999999999"})
    assert claimed.status_code == 413
    assert claimed.json()["errors"][0]["rule"] == "at most 2048 bytes"
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 1024
            yield b" " * 1024

    assert api.post(IDENTIFY, content=endless(), headers={"content-type": JSON}).status_code == 413


def test_a_compressed_body_is_refused(api: Api) -> None:
    body = zlib.compress(json.dumps({"probes": [ROW]}).encode())
    answer = api.post(IDENTIFY, content=body, headers={"content-type": JSON, "content-encoding": "deflate"})
    assert answer.status_code == 415


def test_the_key_is_checked_before_the_body_is_read(start: Start) -> None:
    api = start()
    answer = api.post(IDENTIFY, content=b"{", headers={"content-type": JSON, "x-api-key": "wrong"})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "path", ["/v1/nothing", "/v1", "/v1/galleries/", "/v1//", "/v1/galleries/office/identify/more"]
)
def test_a_route_that_is_not_there_is_a_problem(api: Api, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    Problem.model_validate(answer.json())


def test_a_method_that_is_not_there_is_a_problem_that_names_those_that_are(api: Api) -> None:
    answer = api.put("/v1/galleries")
    assert answer.status_code == 405
    assert {each.strip() for each in answer.headers["allow"].split(",")} == {"GET", "POST"}


# Files


def png_that_claims(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


FILES = [
    ("an image of 50 000 × 50 000", png_that_claims(50_000, 50_000)),
    ("an image that ends early", png_that_claims(32, 32)[:50]),
    ("a zip", zip_bomb()),
    ("a pickle", pickle.dumps([1])),
    ("text", b"hello"),
    ("nothing", b""),
]


@pytest.mark.parametrize("content", [content for _, content in FILES], ids=[name for name, _ in FILES])
def test_a_file_that_bites_is_a_problem(start: Start, content: bytes) -> None:
    pytest.importorskip("onnxruntime")
    api = start()
    api.service.reader._embedder = glyph_files(LimitSettings())
    tracemalloc.start()
    answer = api.post(IDENTIFY, files={"probe": ("x.png", content)})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status_code == 422, answer.text
    Problem.model_validate(answer.json())
    assert peak < 50_000_000


def test_a_form_without_a_file_is_a_problem(start: Start) -> None:
    pytest.importorskip("onnxruntime")
    api = start()
    api.service.reader._embedder = glyph_files(LimitSettings())
    assert api.post(IDENTIFY, data={"a": "1"}, files={}).status_code in (415, 422)
    bad = api.post(IDENTIFY, content=b"--x", headers={"content-type": "multipart/form-data"})
    assert bad.status_code == 400
