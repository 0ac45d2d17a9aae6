"""What goes to a shard and back keeps every bit, and brings no code with it."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from holue.cluster.shards.absent import Absent
from holue.cluster.shards.packed import LARGEST, packed, unpacked
from holue.evidence.evidence import Evidence
from holue.evidence.link import ConvolvedLink, cosine_link, power_link
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery.compressed import compress
from holue.gallery.gallery import Gallery
from holue.recognition.search.search_report import SearchReport


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if is_dataclass(one) and not isinstance(one, type):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.fixture(scope="module")
def evidence() -> list[Evidence]:
    rng = np.random.default_rng(0)
    gallery = Gallery.from_samples(rng.normal(size=(300, 16)), np.arange(300))
    probes = gallery.directions[:7]
    return [
        scan(probes, gallery, sharpness=[40.0, 2.0], top_k=400),  # more places than subjects: −inf among them
        scan_compressed(probes, compress(gallery, "int8"), sharpness=[40.0, 2.0], top_k=3),
        Evidence.empty(5, [1.0], 2),
    ]


def test_evidence_comes_back_bit_for_bit(evidence: list[Evidence]) -> None:
    assert all(same(each, unpacked(packed(each))) for each in evidence)


def test_questions_and_other_answers_come_back(evidence: list[Evidence]) -> None:
    link = ConvolvedLink(16, 40.0, np.linspace(1, 9, 7))
    report = SearchReport("auto", "int8", "größer", 16, 0.25)
    for value in (
        ("office@3", "exact", np.zeros((0, 16), np.float32), [40.0, 2.0], 5, cosine_link, None),
        ("office@3", "int8", np.ones((3, 16))[:, ::2], np.array([40.0, 2.0]), 5, power_link, float("nan")),
        ("office@3", np.arange(9), link, np.float64(0.1), np.array(-np.inf)),
        Absent(("a@1", "a@2")),
        report,
    ):
        there = unpacked(packed(value))
        if isinstance(value, tuple) and value[-1] != value[-1]:
            assert np.isnan(there[-1])
            value, there = value[:-1], there[:-1]
        assert same(value, there)


def test_a_long_question_is_cut_and_its_arrays_can_be_written_to() -> None:
    pieces = packed(("version", np.ones((700, 128), np.float32)))
    assert len(pieces) > 1
    assert max(map(len, pieces)) <= LARGEST
    _, rows = unpacked(pieces)
    rows[0] = 2.0
    assert rows.ctypes.data % 16 == 0


def test_what_is_not_named_is_not_packed() -> None:
    with pytest.raises(TypeError, match="numbers, text, arrays and Absent"):
        packed((print,))
    with pytest.raises(KeyError):
        unpacked([packed(Absent(("a",)))[0].replace(b"Absent", b"Popen_")])
