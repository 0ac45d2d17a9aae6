"""One bit per coordinate decides as an exact scan, and its sums are off by no more than they say."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import binding  # type: ignore[import-untyped]
from scipy.special import log_ndtr, logsumexp

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError
from holue.evidence.binary import scan as module
from holue.evidence.binary.bit_planes import STEP, planes_of, values_of
from holue.evidence.binary.bits_needed import shares_to_score
from holue.evidence.binary.loops.estimate_loops import CHUNK_ROWS as CHUNK
from holue.evidence.binary.loops.lookup_loops import LOOKUP, LOOKUPS, Lookup, add_entries, look_up, look_up_with
from holue.evidence.binary.part import BLOCK_ROWS, BinaryPart, pack_signs, unpack_signs
from holue.evidence.binary.rotation import deviations, rotated_width, rotation
from holue.evidence.binary.scan import BinaryGallery, scan_binary
from holue.evidence.binary.shared_error import learned
from holue.evidence.binary.tables import CHANCE, Tables
from holue.evidence.block import Block
from holue.evidence.evidence import merge
from holue.evidence.precision import EVERY_PLACE
from holue.evidence.scan import scan

Array = npt.NDArray[np.float32]


def unit(x: npt.NDArray[np.floating]) -> Array:
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def random_rows(rng: np.random.Generator, n: int, dim: int) -> Array:
    return unit(rng.normal(size=(n, dim)))


def with_a_mean(rng: np.random.Generator, n: int, dim: int) -> Array:
    return unit(rng.normal(size=(n, dim)) * np.linspace(2, 0.1, dim) + 0.3)


def families(rng: np.random.Generator, n: int, dim: int) -> Array:
    return unit(rng.normal(size=(n // 50 + 1, dim))[rng.integers(n // 50 + 1, size=n)] + rng.normal(size=(n, dim)))


WORLDS = [random_rows, with_a_mean, families]


def probes_of(rng: np.random.Generator, rows: Array, n: int, cosine: float = 0.6) -> Array:
    """Blurred rows, and as many strangers."""
    noise = unit(rng.normal(size=(n, rows.shape[1])))
    mated = unit(cosine * rows[rng.integers(len(rows), size=n)] + np.sqrt(1 - cosine**2) * noise)
    return np.concatenate([mated, unit(rng.normal(size=(n, rows.shape[1])))])


def binary(rows: Array, planes: int = 1) -> BinaryGallery:
    return BinaryGallery((BinaryPart.of_rows(rows, np.arange(len(rows)), planes),))


def looked_up(part: BinaryPart, probes: Array) -> npt.NDArray[np.float64]:
    """The estimates of every cosine as the tables give them, in float64."""
    tables = Tables.of(probes.astype(np.float64), part.planes)
    sums = np.empty((len(probes), len(part.codes) * BLOCK_ROWS), dtype=np.uint16)
    add_entries(part.codes, 0, len(part.codes), tables.entries, 0, len(probes), sums)
    weights = part.scale[0] + part.scale[1] * part.weights
    dots = tables.least[:, None] + tables.step[:, None] * sums[:, : len(part)]
    return np.asarray((probes @ part.centre)[:, None] + weights * dots)


def estimates_of(part: BinaryPart, probes: Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """What the codes say of every cosine, in float64 and without tables; and each row's deviation."""
    values = values_of(unpack_signs(part.codes, len(part)), part.planes).astype(np.float64)
    weights = part.scale[0] + part.scale[1] * part.weights
    sums = (probes.astype(np.float64) @ rotation(part.dim)) @ values.T
    return (probes @ part.centre)[:, None] + weights * sums, part.scale[2] + part.scale[3] * part.deviations


@pytest.mark.parametrize("dim", [1, 5, 64, 100])
def test_a_rotation_keeps_lengths_and_is_always_the_same(dim: int) -> None:
    turn = rotation(dim)
    assert turn.shape == (dim, rotated_width(dim))
    np.testing.assert_allclose(turn @ turn.T, np.eye(dim), atol=1e-12)
    rotation.cache_clear()
    np.testing.assert_array_equal(rotation(dim), turn)


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("rows_of", WORLDS)
def test_estimates_have_no_bias_and_the_deviation_they_say(rows_of, planes: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    rows = rows_of(rng, 4000, 96)
    probes = unit(rng.normal(size=(200, 96)))
    part = binary(rows, planes).parts[0]
    estimates, deviation = estimates_of(part, probes)
    # √(2/π) of a row's length is along its signs, √0.881 along the best four levels (Max 1960).
    assert 0.9 < part.typical[1] * np.sqrt(128 / (1 - (part.centre**2).sum())) / {1: 0.756, 2: 0.367}[planes] < 1.1
    error = (estimates - probes @ rows.T) / deviation
    assert abs(error.mean()) < 0.01
    # A probe across a row has the whole deviation, and random ones nearly so.
    assert 0.97 < error.std() < 1.01
    for chance in (1e-2, 1e-3, 1e-4):
        assert (error < -deviations(128, chance)).mean() < 1.25 * chance


def test_a_chance_of_one_in_a_million_holds_on_the_sphere() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400_000, 63))
    u = x[:, 0] / np.sqrt(np.einsum("ij,ij->i", x, x)) * np.sqrt(63)
    for chance in (0.1, 0.01, 0.001):
        assert abs((u < -deviations(64, chance)).mean() - chance) < 5 * np.sqrt(chance / len(u))


HERE = [lookup for lookup in LOOKUPS if binding.get_host_cpu_features().get(lookup.feature)]


@pytest.mark.parametrize("lookup", HERE, ids=lambda lookup: f"{lookup.feature}-{lookup.bits}")
def test_every_way_to_look_up_adds_what_one_lookup_after_another_adds(lookup: Lookup) -> None:
    fast_loop = look_up if lookup == LOOKUP else look_up_with(lookup)

    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 150), st.integers(1, 9), st.integers(1, 330), st.integers(0, 2**32 - 1))
    def law(n: int, n_probes: int, dim: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        part = binary(random_rows(rng, n, dim)).parts[0]
        tables = Tables.of(random_rows(rng, n_probes, dim).astype(np.float64), bits=lookup.bits)
        blocks = len(part.codes)
        fast, plain = (np.empty((n_probes, blocks * BLOCK_ROWS), dtype=np.uint16) for _ in range(2))
        first, last = rng.integers(n_probes), n_probes
        fast_loop(part.codes, 0, blocks, tables.entries, first, last, fast)
        add_entries(part.codes, 0, blocks, tables.entries, first, last, plain)
        np.testing.assert_array_equal(fast[: last - first], plain[: last - first])

    law()


@pytest.mark.parametrize("bits", [4, 6])
def test_tables_add_the_coordinates_of_a_probe_with_the_signs_of_a_row(bits: int) -> None:
    rng = np.random.default_rng(11)
    rows, probes = random_rows(rng, 100, 200), random_rows(rng, 30, 200).astype(np.float64)
    part, tables = binary(rows).parts[0], Tables.of(probes, bits=bits)
    sums = np.empty((30, len(part.codes) * BLOCK_ROWS), dtype=np.uint16)
    add_entries(part.codes, 0, len(part.codes), tables.entries, 0, 30, sums)
    added = tables.least[:, None] + tables.step[:, None] * sums[:, :100]
    exact = (probes @ rotation(200)) @ (2.0 * unpack_signs(part.codes, 100) - 1).T
    # Rounding has no bias, and the variance that the tables say (the same random numbers round all probes).
    off = (added - exact) / np.sqrt(tables.variance)[:, None]
    assert abs(off.mean()) < 0.05
    assert 0.9 < off.std() < 1.1


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("dim", [3, 64, 200])
def test_tables_are_off_by_no_more_than_they_say(dim: int, planes: int) -> None:
    rng = np.random.default_rng(2)
    rows, probes = with_a_mean(rng, 300, dim), random_rows(rng, 20, dim)
    part, tables = binary(rows, planes).parts[0], Tables.of(probes.astype(np.float64), planes)
    off = np.abs(looked_up(part, probes) - estimates_of(part, probes)[0]).max(axis=1)
    assert (off <= tables.error_in(part)).all()
    assert (tables.error_in(part) < 0.25 * part.typical[1] * np.sqrt(part.width)).all()


def test_signs_come_out_of_their_blocks() -> None:
    signs = np.random.default_rng(3).random((131, 192)) < 0.5
    codes = np.empty((3, 24, 64), dtype=np.uint8)
    pack_signs(signs, codes)
    np.testing.assert_array_equal(unpack_signs(codes, 131), signs)


def test_two_bits_are_the_nearest_of_four_levels() -> None:
    x = np.random.default_rng(14).normal(size=(50, 256)) * np.linspace(0.5, 3, 50)[:, None]
    levels = np.array([-1.5, -0.5, 0.5, 1.5]) * STEP * np.sqrt((x**2).mean(axis=1))[:, None, None]
    nearest = np.abs(x[:, :, None] - levels).argmin(axis=2)
    np.testing.assert_array_equal(values_of(planes_of(x, 2), 2), 2 * nearest - 3)


def test_the_share_that_one_bit_leaves_to_score_is_known_before_there_are_codes() -> None:
    rng = np.random.default_rng(15)
    shares = []
    for rows_of, dim in ((random_rows, 128), (with_a_mean, 256), (families, 256)):
        rows = rows_of(rng, 20_000, dim)
        strangers = rows_of(rng, 200, dim) if rows_of is not families else rows[:200]
        rest = rows if rows_of is not families else rows[200:]
        threshold = np.quantile((strangers @ rest.T).max(axis=1), 0.99)
        shares.append(shares_to_score(rows))
        for planes, share in zip((1, 2), shares[-1]):
            part = binary(rest, planes).parts[0]
            estimates, sigma = estimates_of(part, strangers)
            counted = (estimates + deviations(part.width, 1e-6) * sigma > threshold).mean()
            # The threshold is estimated from a hundred rows: a deviation of it moves a small share by a factor of two.
            assert counted / 2 - 2e-4 < share < 2 * counted + 2e-4
    assert [each.planes for each in shares] == [2, 2, 1]


@pytest.mark.parametrize("dim", [128, 512])
def test_codes_take_a_twentyfourth_of_float32(dim: int) -> None:
    rows = random_rows(np.random.default_rng(4), 640, dim)
    assert binary(rows).nbytes <= rows.nbytes / 24


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(WORLDS),
    st.integers(1, 3 * CHUNK),
    st.sampled_from([2, 16, 100]),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([1, 2]),
    st.integers(0, 2**32 - 1),
)
def test_the_top_is_that_of_an_exact_scan(rows_of, n, dim, threads, leave, planes, seed) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    rows = rows_of(rng, n, dim)
    gone = rng.random(n) < 0.2 if leave and n > 2 else np.zeros(n, dtype=bool)
    gone[0] = False
    part = replace(BinaryPart.of_rows(rows, np.arange(n), planes), gone=gone if gone.any() else None)
    probes = probes_of(rng, rows, 4)
    seen = scan_binary(probes, BinaryGallery((part,)), [20.0, 1.0], top_k=3, threads=threads)
    exact = scan(probes, [part.block], [20.0, 1.0], top_k=3)
    np.testing.assert_array_equal(seen.top_index, exact.top_index)
    np.testing.assert_array_equal(seen.top_scores, exact.top_scores)
    assert seen.n_subjects == exact.n_subjects == n - gone.sum()
    assert np.isfinite(seen.log_mass).all()


def reference(
    part: BinaryPart, probe: Array, sharpness: float, cut: float, z: float, beta: float
) -> tuple[float, float]:
    """Log-mass and mean score by the formulas of ``completion.py``, in plain numpy."""
    (estimates,), sigma = looked_up(part, probe[None]), part.scale[2] + part.scale[3] * part.deviations
    rounding = Tables.of(probe[None].astype(np.float64), part.planes).variance[0] * part.typical[0] ** 2
    scores, base, a = part.exact @ probe.astype(np.float64), float(probe @ part.centre), sharpness
    listed = estimates + z * sigma + beta > cut
    sigma = np.sqrt(sigma**2 + rounding)
    own = sigma[listed] * np.sqrt(1 - (scores[listed] - base) ** 2)
    u = (scores[listed] - (cut - z * sigma[listed] - beta)) / own
    log_h = a * scores[listed] + log_ndtr(u + a * own) - log_ndtr(u)
    x = estimates[~listed] - a * sigma[~listed] ** 2
    log_g = a * estimates[~listed] - a**2 * sigma[~listed] ** 2 * (1 - (x - base) ** 2) / 2
    x_h = scores[listed] + own * np.exp(-((u + a * own) ** 2) / 2 - log_ndtr(u + a * own)) / np.sqrt(2 * np.pi)
    logs = np.concatenate([log_h, log_g])
    total = logsumexp(logs)
    return float(total), float(np.exp(logs - total) @ np.concatenate([x_h, x]))


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("rows_of", WORLDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_sums_are_those_of_the_formulas(rows_of, threads: int, planes: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    rows = rows_of(rng, 6000, 128)
    part = BinaryPart.of_rows(rows, np.arange(len(rows)), planes)
    probes, sharpness = probes_of(rng, rows, 10), [60.0, 12.0, 3.0]
    seen = scan_binary(probes, BinaryGallery((part,)), sharpness, top_k=1, decisive=0.5, threads=threads)
    assert seen.precision is not None
    assert (seen.precision.top_from > EVERY_PLACE).all()
    z = deviations(128, module.MISSED - CHANCE)
    beta = Tables.of(probes.astype(np.float64), planes).error_in(part)
    for i, probe in enumerate(probes):
        for m, a in enumerate(sharpness):
            # The key of one row is the cut but for a rounding of float32: it may count as listed or not.
            cuts = float(seen.precision.top_from[i]) + np.array([-1e-6, 1e-6])
            off = [reference(part, probe, a, cut, z, float(beta[i])) for cut in cuts]
            off = np.abs(np.array([seen.log_mass[i, m], seen.mean_score[i, m]]) - off).min(axis=0)
            assert (off < (2e-5 + 1e-6 * a, 1e-5)).all()


@pytest.mark.parametrize("planes", [1, 2])
@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("rows_of", WORLDS)
def test_standard_errors_hold(  # type: ignore[no-untyped-def]
    rows_of, sampled: bool, planes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sampled:  # as in a large gallery
        monkeypatch.setattr(module, "WEIGHED_ROWS", 3000)
        monkeypatch.setattr(module, "SAMPLE_ERROR", 0.1)
        monkeypatch.setattr(module, "CUT_FROM", 4096)
    rng = np.random.default_rng(6)
    everybody = rows_of(rng, 12_400, 128)
    rows, strangers = everybody[:12_000], everybody[12_000:]
    gallery = BinaryGallery((learned(BinaryPart.of_rows(rows, np.arange(len(rows)), planes)),))
    probes = np.concatenate([probes_of(rng, rows, 400)[:400], strangers])
    sharpness = [100.0, 5.0]
    seen, exact = scan_binary(probes, gallery, sharpness, top_k=5, decisive=0.5), scan(probes, rows, sharpness, top_k=5)
    assert seen.precision is not None
    for kind in (slice(0, 400), slice(400, 800)):
        for estimate, truth, error in (
            (seen.log_mass, exact.log_mass, seen.precision.log_mass_error),
            (seen.mean_score, exact.mean_score, seen.precision.mean_score_error),
        ):
            within = np.abs(estimate - truth)[kind] <= 3 * error[kind] + 1e-6
            assert (within.mean(axis=0) >= 0.99).all()
    useful = 0.1 if sampled else 0.05
    assert np.median(seen.precision.log_mass_error[:, 1]) < useful, "an error that says nothing would hold as well"


def test_a_decision_needs_no_more_than_its_threshold_and_says_from_where_the_top_is_certain() -> None:
    rng = np.random.default_rng(7)
    rows = random_rows(rng, 20_000, 64)
    probes = probes_of(rng, rows, 60, 0.75)
    exact = scan(probes, rows, [], top_k=5)
    seen = scan_binary(probes, binary(rows), [], top_k=5, decisive=0.7)
    assert seen.precision is not None
    accepted = exact.top_scores[:, 0] >= 0.7
    assert 20 < accepted.sum() < 100
    np.testing.assert_array_equal(seen.top_scores[:, 0] >= 0.7, accepted)
    np.testing.assert_array_equal(seen.top_index[accepted, 0], exact.top_index[accepted, 0])
    certain = exact.top_scores > seen.precision.top_from[:, None]
    np.testing.assert_array_equal(seen.top_index[certain], exact.top_index[certain])
    assert not certain.all()


@pytest.mark.parametrize("sharpness", [5.0, 12.0])
def test_a_sample_of_the_rest_stands_for_all_of_it(sharpness: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    rows = random_rows(rng, 40_000, 64)
    gone = rng.random(len(rows)) < 0.1
    gallery = BinaryGallery((replace(BinaryPart.of_rows(rows, np.arange(len(rows))), gone=gone),))
    probes = probes_of(rng, rows, 100)
    monkeypatch.setattr(module, "CUT_FROM", 4096)
    whole = scan_binary(probes, gallery, [sharpness], top_k=1, decisive=0.85)
    monkeypatch.setattr(module, "WEIGHED_ROWS", 4000)
    monkeypatch.setattr(module, "SAMPLE_ERROR", 1.0)
    some = scan_binary(probes, gallery, [sharpness], top_k=1, decisive=0.85)
    assert whole.precision is not None
    assert some.precision is not None
    np.testing.assert_array_equal(some.top_index, whole.top_index)
    estimated = some.precision.top_from > EVERY_PLACE  # others were scanned exactly
    assert estimated.sum() > 150
    added = np.sqrt(some.precision.log_mass_error**2 - whole.precision.log_mass_error**2)[estimated]
    assert (added > 0).all(), "a sample is less certain"
    off = (some.log_mass - whole.log_mass)[estimated] / added
    assert (np.abs(off) < 4).all()
    assert 0.5 < np.sqrt((off**2).mean()) < 1.5, "and its error is as large as it says"


def test_few_probes_list_more_where_the_decision_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)
    rows = random_rows(rng, 70_000, 64)
    probes = random_rows(rng, 2, 64)
    monkeypatch.setitem(module.FEWEST_LISTED, 1, 1000)
    threshold = 0.7
    seen = scan_binary(probes, binary(rows), [], top_k=1, decisive=threshold)
    assert seen.precision is not None
    assert (seen.precision.top_from > EVERY_PLACE).all(), "without reading all rows"
    assert (seen.top_scores < threshold).all()
    monkeypatch.setattr(module, "FEW_PROBES", 0)
    again = scan_binary(probes, binary(rows), [], top_k=1, decisive=threshold)
    assert again.precision is not None
    assert (again.precision.top_from == EVERY_PLACE).any()


def test_a_probe_of_which_nothing_can_be_promised_is_scanned_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    rows = random_rows(rng, 6000, 32)
    probes = probes_of(rng, rows, 3)
    monkeypatch.setitem(module.FEWEST_LISTED, 1, 10)
    seen, exact = scan_binary(probes, binary(rows), [10.0], top_k=5), scan(probes, rows, [10.0], top_k=5)
    assert seen.precision is not None
    assert (seen.precision.top_from == EVERY_PLACE).all()
    np.testing.assert_array_equal(seen.top_index, exact.top_index)
    np.testing.assert_allclose(seen.log_mass, exact.log_mass, atol=1e-5)


def test_equal_rows_and_few_rows_are_no_trouble() -> None:
    rows = np.repeat(np.eye(3, 8, dtype=np.float32), 900, axis=0)
    seen, exact = scan_binary(rows[::900], binary(rows), [5.0], top_k=4), scan(rows[::900], rows, [5.0], top_k=4)
    np.testing.assert_array_equal(seen.top_index, exact.top_index)
    one = scan_binary(rows[:1], binary(rows[:1]), [0.0, 7.0], top_k=2)
    assert one.top_index.tolist() == [[0, -1]]
    np.testing.assert_allclose(one.log_mass, [[0.0, 7.0]], atol=1e-6)


def test_parts_are_read_together_and_merge_with_exact_ones() -> None:
    rng = np.random.default_rng(9)
    rows = families(rng, 9000, 64)
    numbers = np.arange(len(rows))
    cut = ((slice(0, 5000), 1), (slice(5000, 8000), 2))
    parts = tuple(BinaryPart.of_rows(rows[own], numbers[own], planes) for own, planes in cut)
    probes = probes_of(rng, rows, 20)
    beside = scan(probes, [Block(rows[8000:], numbers[8000:], np.empty(0, dtype=bool))], [10.0], top_k=3)
    seen = merge(scan_binary(probes, BinaryGallery(parts), [10.0], top_k=3), beside)
    exact = scan(probes, rows, [10.0], top_k=3)
    np.testing.assert_array_equal(seen.top_index, exact.top_index)
    assert seen.precision is not None
    assert (np.abs(seen.log_mass - exact.log_mass) <= 5 * seen.precision.log_mass_error + 1e-5).all()


def test_bad_input_is_named() -> None:
    rows = random_rows(np.random.default_rng(10), 5, 4)
    with pytest.raises(InvalidEmbeddingsError, match="rows 0 to 4 hold coordinates that no unit vector has"):
        BinaryPart.of_rows(np.full_like(rows, np.nan), np.arange(5))
    with pytest.raises(InvalidEmbeddingsError, match="3 features, the gallery has 4"):
        scan_binary(rows[:, :3], binary(rows), [1.0])
    nobody = replace(binary(rows).parts[0], gone=np.ones(5, dtype=bool))
    with pytest.raises(GalleryTooSmallError):
        scan_binary(rows, BinaryGallery((nobody,)), [1.0])


@pytest.mark.data
@pytest.mark.parametrize("enrolled", ["first", "last"])
def test_decisions_about_real_faces_are_those_of_an_exact_scan(
    enrolled: str, real_faces: tuple[Array, npt.NDArray[np.str_]]
) -> None:
    """A gallery of all 5 749 people, one picture each; all other pictures are probes, half of them with their person gone."""
    embeddings, people = real_faces
    rows = unit(embeddings.astype(np.float64))
    subjects, first = np.unique(people, return_index=True)
    chosen = first if enrolled == "first" else len(people) - 1 - np.unique(people[::-1], return_index=True)[1]
    assert len(subjects) == 5749
    probes = np.delete(rows, chosen, axis=0)[::2]
    gone = np.random.default_rng(0).random(len(subjects)) < 0.3
    part = replace(BinaryPart.of_rows(rows[chosen], np.arange(len(subjects))), gone=gone)
    exact = scan(probes, [part.block], [400.0, 20.0], top_k=5)
    for threshold in (0.25, 0.35):
        seen = scan_binary(probes, BinaryGallery((part,)), [400.0, 20.0], top_k=5, decisive=threshold)
        accepted = exact.top_scores[:, 0] >= threshold
        np.testing.assert_array_equal(seen.top_scores[:, 0] >= threshold, accepted)
        np.testing.assert_array_equal(seen.top_index[accepted, 0], exact.top_index[accepted, 0])
