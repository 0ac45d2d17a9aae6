from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holue.errors import InvalidEmbeddingsError, InvalidInputError, InvalidSubjectsError
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart, listed
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery


def part(enrolled, probes, *, dim=4, **columns) -> ProtocolPart:
    rng = np.random.default_rng(0)
    return ProtocolPart(
        Gallery.from_samples(rng.normal(size=(len(enrolled), dim)), enrolled),
        Embeddings.from_samples(rng.normal(size=(len(probes), dim))),
        np.array(probes),
        **columns,
    )


@given(
    st.sets(st.integers(0, 30), min_size=1),
    st.lists(st.integers(0, 30), min_size=1, max_size=20),
)
def test_a_probe_is_mated_exactly_when_its_subject_is_enrolled(enrolled, probes):
    made = part(sorted(enrolled), probes)
    assert made.mated.tolist() == [probe in enrolled for probe in probes]
    assert made.counts["mated_probes"] + made.counts["non_mated_probes"] == len(probes)
    assert set(made.subjects.tolist()) == enrolled | set(probes)


def test_parts_with_shared_subjects_are_refused_and_the_subjects_named():
    with pytest.raises(InvalidSubjectsError, match=r"share 2 subjects \('ann', 'eve'\)"):
        IdentificationProtocol("mixed", part(["ann"], ["ann", "eve"]), part(["bob", "eve"], ["bob", "zoe", "ann"]))


def test_equal_ids_of_different_sources_are_different_people():
    development = part([1, 2], [1, 3], source="ms1mv2")
    evaluation = part([1, 2], [1, 3], source="ijbc")
    assert IdentificationProtocol("ijbc", development, evaluation).evaluation is evaluation


@pytest.mark.parametrize(
    ("probes", "message"), [(["ann", "bob"], "no non-mated probes"), (["eve", "zoe"], "no mated probes")]
)
def test_a_part_with_one_kind_of_probe_is_refused(probes, message):
    whole = part(["c", "d"], ["c", "x"])
    one_kind = part(["ann", "bob"], probes)
    with pytest.raises(InvalidSubjectsError, match=f"the evaluation part has {message}"):
        IdentificationProtocol("closed", whole, one_kind)
    with pytest.raises(InvalidSubjectsError, match=f"the development part has {message}"):
        IdentificationProtocol("closed", one_kind, whole)


def test_integers_are_never_matched_with_strings():
    with pytest.raises(InvalidSubjectsError, match="the gallery's are integers and the probes' are strings"):
        part([1, 2], ["1", "3"])
    with pytest.raises(InvalidSubjectsError, match="development part's are integers"):
        IdentificationProtocol("mixed", part([1], [1, 2]), part(["3"], ["3", "4"]))


@pytest.mark.parametrize(
    "columns",
    [
        {"probe_templates": np.arange(3)},
        {"groups": np.array(["x"])},
        {"qualities": {"quality": np.ones(5)}},
        {"qualities": {"quality": np.ones((2, 1))}},
    ],
)
def test_columns_of_another_length_are_refused(columns):
    with pytest.raises(InvalidInputError, match=r"one entry per probe: got shape .* for 2 probes"):
        part([1], [1, 2], **columns)


def test_a_quality_that_is_not_finite_is_refused_with_its_probe():
    with pytest.raises(InvalidInputError, match=r"qualities\['scale'\] must be finite: probe 1 has nan"):
        part([1], [1, 2], qualities={"scale": np.array([1.0, np.nan])})


def test_dimensions_must_agree_within_and_between_parts():
    with pytest.raises(InvalidEmbeddingsError, match="probes have 5 features and the gallery has 4"):
        ProtocolPart(Gallery.from_samples(np.eye(4), [1, 2, 3, 4]), Embeddings.from_samples(np.eye(5)), np.arange(5))
    with pytest.raises(InvalidEmbeddingsError, match="4 features and the evaluation part 6"):
        IdentificationProtocol("two models", part([1], [1, 2]), part([3], [3, 4], dim=6))


def test_only_qualities_of_both_parts_are_offered():
    column = np.array([1.0, 2.0])
    development = part([1], [1, 2], qualities={"concentration": column, "scale": column})
    evaluation = part([3], [3, 4], qualities={"pfe": column, "concentration": column})
    protocol = IdentificationProtocol("partial", development, evaluation)
    assert protocol.quality_names == ("concentration",)
    assert protocol.unpaired_qualities == ("pfe", "scale")


def test_long_lists_are_shortened_in_messages():
    assert listed(np.arange(3)) == "0, 1, 2"
    assert listed(np.array(list("abcdefg"))) == "'a', 'b', 'c', 'd', 'e' and 2 more"
