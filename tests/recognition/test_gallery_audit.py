import json

import numpy as np
import pytest

from holue.datasets.simulated import simulate
from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError, InvalidSubjectsError
from holue.gallery.left_out import LeftOut
from holue.recognition.audit.agreement import Agreement
from holue.recognition.audit.audit import audit_gallery
from holue.recognition.audit.duplicates import favour_of_mutual
from holue.recognition.audit.populations import SamePerson
from holue.recognition.calibration.rate_by_subject import rate_by_subject
from holue.recognition.recognizer import OpenSetRecognizer


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(5)
    return simulate(
        n_subjects=300, n_strangers=0, dim=64, enrolled_samples=6, quality_spread=0.3, look_alike_pairs=0, rng=rng
    ).gallery


def planted(X, y, rng, n_duplicates, n_swaps, least_duplicate=4, least_swap=3):
    """Labels with people enrolled twice ('#2') and samples exchanged between two people, none of them in both."""
    labels = y.astype("<U60")
    people, row, count = np.unique(labels, return_inverse=True, return_counts=True)
    swapped = rng.permutation(np.flatnonzero(count >= least_swap))[: 2 * n_swaps]
    twice = rng.permutation(np.setdiff1d(np.flatnonzero(count >= least_duplicate), swapped))[:n_duplicates]
    for person in twice:
        samples = rng.permutation(np.flatnonzero(row == person))
        labels[samples[: len(samples) // 2]] = people[person] + "#2"
    wrong = []
    for one, two in swapped.reshape(-1, 2):
        i, j = rng.choice(np.flatnonzero(row == one)), rng.choice(np.flatnonzero(row == two))
        labels[i], labels[j] = labels[j], labels[i]
        wrong += [i, j]
    return labels, people[twice], np.array(wrong)


def person(subject):
    return subject.removesuffix("#2")


def recall_and_precision(audit, twice, wrong, known_samples=(), known_pairs=()):
    samples = {int(f.sample) for f in audit.mislabelled}
    pairs = {(person(f.first), person(f.second)) for f in audit.duplicates}
    hits = {a for a, b in pairs if a == b} & set(twice)
    return (
        len(samples & set(wrong)) / len(wrong),
        len(samples & set(wrong)) / len(samples - set(known_samples)),
        len(hits) / len(twice),
        len(hits) / len({pair for pair in pairs if tuple(sorted(pair)) not in known_pairs}),
    )


def test_a_clean_gallery_is_clean(clean):
    audit = audit_gallery(clean.X, clean.person, concentration=clean.concentration)
    assert audit.mislabelled == audit.duplicates == audit.hubs == ()
    assert audit.fnir is not None
    assert audit.fpir == pytest.approx(0.01, abs=0.005)


@pytest.mark.parametrize("seed", range(3))
def test_planted_faults_are_found_and_little_else(clean, seed):
    labels, twice, wrong = planted(clean.X, clean.person, np.random.default_rng(seed), 20, 10)
    audit = audit_gallery(clean.X, labels)
    assert min(recall_and_precision(audit, twice, wrong)) >= 0.95
    original = clean.person.astype(str)
    assert all(
        person(f.looks_like) == original[int(f.sample)] for f in audit.mislabelled if int(f.sample) in set(wrong)
    )
    assert all(f.cost_fnir > 0 for f in audit.duplicates[:10]), "a twin takes the other's probes"


def test_a_direction_that_all_subjects_share_does_not_hide_duplicates(clean):
    labels, twice, wrong = planted(clean.X, clean.person, np.random.default_rng(0), 20, 10)
    shift = 1.2 * np.eye(64)[0]
    audit = audit_gallery(clean.X + shift, labels)
    templates = {subject: (clean.X + shift)[labels == subject].sum(axis=0) for subject in set(labels.tolist())}
    assert min(recall_and_precision(audit, twice, wrong)) >= 0.9
    for fault in audit.duplicates:
        one, two = (templates[name] / np.linalg.norm(templates[name]) for name in (fault.first, fault.second))
        # Templates are pooled from unit samples, these sums are not: close is enough to tell raw cosines from centred ones.
        assert fault.score == pytest.approx(one @ two, abs=0.05), "scores are those that the system sees"


def test_a_person_enrolled_three_times_is_three_pairs(clean):
    labels = clean.person.copy()
    labels[:2], labels[2:4] = 1000, 1001
    pairs = {(f.first, f.second) for f in audit_gallery(clean.X, labels).duplicates}
    assert pairs == {(0, 1000), (0, 1001), (1000, 1001)}


def test_single_samples_show_duplicates_and_the_audit_says_what_it_cannot_know(clean):
    one = clean.X[::6]
    audit = audit_gallery(np.vstack([one, one[:1]]), np.arange(301))
    assert [(f.first, f.second) for f in audit.duplicates] == [(0, 300)]
    assert audit.fnir is None
    assert audit.mislabelled == ()
    assert any("one sample" in note for note in audit.notes)


def test_the_agreement_of_two_subjects_is_that_of_their_samples_taken_pair_by_pair(clean):
    left = LeftOut.of(clean.X[:42], clean.person[:42])
    agreement = Agreement.of(left)
    x = left.samples.directions.astype(np.float64)
    cosine = x @ x.T
    one, two = left.row == 0, left.row == 1
    pairs = ~np.eye(6, dtype=bool)
    within = [cosine[np.ix_(rows, rows)][pairs] for rows in (left.row == c for c in range(7))]
    typical = np.median([values.mean() for values in within])
    # 15 pairs of six samples, and one typical pair.
    expected = [(15 * values.mean() + typical) / 16 for values in within]
    near = np.array([[1]] + [[0]] * 6)
    found = agreement.between(near, np.einsum("ij,ikj->ik", left.gallery.directions, left.gallery.directions[near]))
    assert found[0, 0] == pytest.approx(cosine[np.ix_(one, two)].mean() - (expected[0] + expected[1]) / 2, abs=1e-6)


def test_the_agreement_of_one_person_does_not_depend_on_how_many_samples_there_are():
    rng = np.random.default_rng(0)
    means = {}
    for n in (4, 16):
        X = np.repeat(rng.normal(size=(400, 32)), n, axis=0) + 0.7 * rng.normal(size=(400 * n, 32))
        means[n] = Agreement.of(LeftOut.of(X, np.arange(400 * n) // n)).of_halves.mean()
    # The standard error of the mean of 400 is below 0.005.
    assert all(abs(mean) < 0.015 for mean in means.values())


def test_a_medium_counts_as_one_sample_in_the_agreement(clean):
    media = np.arange(len(clean.X)) // 2
    frames = Agreement.of(LeftOut.of(clean.X, clean.person, media=media))
    assert set(frames.count) == {3.0}
    twice = Agreement.of(
        LeftOut.of(
            np.repeat(clean.X, 2, axis=0), np.repeat(clean.person, 2), media=np.repeat(np.arange(len(clean.X)), 2)
        )
    )
    once = Agreement.of(LeftOut.of(clean.X, clean.person))
    np.testing.assert_allclose(twice.within, once.within, atol=1e-6)


def test_a_model_that_tells_nobody_apart_is_named_before_anything_else():
    rng = np.random.default_rng(0)
    audit = audit_gallery(rng.normal(size=(600, 64)), np.arange(600) // 5)
    first = audit.discrimination
    assert first.grade == "does not tell apart"
    assert "does not tell your subjects apart" in first.sentence
    assert "do not trust the findings" in first.consequence
    assert first.interval[0] <= first.chance <= first.interval[1]
    assert next(iter(audit.to_dict())) == "discrimination"


def test_the_grade_is_fine_weak_or_worse_as_the_spread_of_a_person_grows():
    rng = np.random.default_rng(1)
    person = np.repeat(np.arange(100), 6)
    centres = rng.normal(size=(100, 64))
    grades = []
    for spread in (0.5, 1.8, 8.0):
        X = centres[person] + spread * rng.normal(size=(600, 64))
        grades.append(audit_gallery(X, person, target_fpir=0.05).discrimination.grade)
    assert grades == ["fine", "weak", "does not tell apart"]


def test_a_gallery_of_single_samples_has_no_grade_and_a_few_of_them_are_counted(clean):
    single = audit_gallery(clean.X[::6], np.arange(300)).discrimination
    assert (single.grade, single.rank_1, single.interval) == ("unknown", None, None)
    assert "cannot be known" in single.sentence
    some = np.concatenate([np.flatnonzero(clean.person > 20), np.arange(0, 126, 6)])
    audit = audit_gallery(clean.X[some], clean.person[some])
    assert audit.discrimination.grade == "fine"
    assert audit.discrimination.n_subjects == 279
    assert any("21 of 300 subjects have one sample" in note for note in audit.notes)


def test_the_interval_of_rank_1_covers_the_true_rate_of_people_whose_answers_hang_together():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(400):
        person_rate = rng.beta(1.6, 0.4, size=80)
        low, high = rate_by_subject(rng.binomial(5, person_rate) / 5)[1:]
        covered += low <= 0.8 <= high
    # 95 % of 400, less three standard deviations of a binomial count and what the normal approximation costs.
    assert covered >= 360


def test_poor_references_are_those_far_below_the_typical_quality(clean):
    kappa = np.full(len(clean.X), 200.0) * np.exp(0.05 * np.random.default_rng(0).normal(size=len(clean.X)))
    kappa[clean.person == 7] = 20.0
    audit = audit_gallery(clean.X, clean.person, concentration=kappa)
    assert audit.poor_references[0].subject == 7
    assert audit.poor_references[0].quality == pytest.approx(20.0)
    assert audit.poor_references[0].typical == pytest.approx(200.0, rel=0.05)
    assert audit_gallery(clean.X, clean.person, quality=kappa).poor_references[0].subject == 7


def test_a_subject_in_the_middle_of_everybody_is_a_hub(clean):
    shift = np.zeros(64)
    shift[0] = 0.6
    X = np.vstack(
        [clean.X + shift, np.tile(np.eye(64)[:1], (3, 1)) + 0.01 * np.random.default_rng(0).normal(size=(3, 64))]
    )
    audit = audit_gallery(X, np.append(clean.person, [999] * 3), target_fpir=0.05)
    hub = audit.hubs[0]
    assert hub.subject == 999
    assert hub.times_expected > 20
    assert hub.cost_fpir == max(h.cost_fpir for h in audit.hubs)


def test_look_alikes_are_pairs_the_threshold_cannot_tell_apart():
    world = simulate(
        n_subjects=120,
        look_alike_pairs=5,
        look_alike_cosine=0.6,
        concentration=300.0,
        enrolled_samples=5,
        quality_spread=0.1,
        rng=np.random.default_rng(1),
    ).gallery
    audit = audit_gallery(world.X, world.person, threshold=0.45)
    assert {(f.first, f.second) for f in audit.look_alikes} == {(2 * i, 2 * i + 1) for i in range(5)}
    assert all(0 < f.probability_taken < 0.2 for f in audit.look_alikes)


def test_the_whole_audit_is_plain_json(clean):
    text = json.dumps(audit_gallery(clean.X, clean.person).to_dict(), allow_nan=False)
    assert json.loads(text)["n_subjects"] == 300


def test_a_subject_and_another_who_are_each_others_best_are_likelier_one_person():
    rng = np.random.default_rng(0)
    n = 400
    best = rng.normal(size=(n, n)).max(axis=1) / 20 - 0.5
    best[:20] = -0.1  # ten people enrolled twice
    partner = rng.integers(20, n, size=n)
    partner[:20] = np.arange(20) ^ 1
    same = SamePerson(-0.1, 0.1, 4.0)
    favour = favour_of_mutual(partner, best, same)
    mutual = partner[partner] == np.arange(n)
    assert mutual[:20].all()
    # Of 380 strangers with random partners about one is mutual: (1 + 1) / 382 is what luck would give.
    rate = (mutual[20:].sum() + 1) / (380 + 2)
    assert favour[mutual] == pytest.approx(-np.log(rate), rel=0.05)  # a few of the twenty may be taken for strangers
    assert (favour[~mutual] == 0).all(), (
        "of a person enrolled three times two pairs are not mutual, and it is not held against them"
    )


def test_a_model_that_gives_every_sample_the_same_embedding_is_refused_with_the_reason():
    X, y = np.ones((30, 8)), np.repeat(np.arange(10), 3)
    with pytest.raises(InvalidEmbeddingsError, match="all 30 samples have the same embedding"):
        audit_gallery(X, y)
    with pytest.raises(InvalidEmbeddingsError, match="all 30 samples have the same embedding"):
        OpenSetRecognizer().fit(X, y).calibrate_leave_one_out(X, y)


def test_bad_galleries_are_refused(clean):
    with pytest.raises(GalleryTooSmallError, match="at least 3"):
        audit_gallery(np.eye(4), [0, 0, 1, 1])
    with pytest.raises(InvalidSubjectsError, match="names 2 samples"):
        audit_gallery(np.eye(4), [0, 1, 2, 3], sample_id=["a", "a", "b", "c"])
    with pytest.raises(InvalidParameterError, match="quality must be one finite number per sample"):
        audit_gallery(clean.X, clean.person, quality=[1.0])
    with pytest.raises(InvalidParameterError, match="target_fpir"):
        audit_gallery(np.eye(4), [0, 1, 2, 3], target_fpir=2.0)


def test_a_tiny_gallery_gets_the_finest_threshold_it_can_have_and_is_told():
    audit = audit_gallery(np.random.default_rng(0).normal(size=(8, 5)), np.arange(8), target_fpir=0.01)
    assert any("too small" in note for note in audit.notes)


@pytest.mark.data
def test_real_faces_raise_no_alarm_about_the_model(real_faces):
    X, y = real_faces
    first = audit_gallery(X, y, threads=1).discrimination
    assert first.grade == "fine"
    assert first.interval[0] > 0.95


@pytest.mark.data
def test_on_real_faces_planted_duplicates_and_swapped_labels_are_found(real_faces):
    X, y = real_faces
    _, row, count = np.unique(y, return_inverse=True, return_counts=True)
    X, y = X[count[row] > 1], y[count[row] > 1]
    # LFW has faults of its own, which the audit finds; they are no false findings.
    before = audit_gallery(X, y, threads=1)
    own_samples = {int(f.sample) for f in before.mislabelled}
    own_pairs = {tuple(sorted((f.first, f.second))) for f in before.duplicates}
    assert len(own_samples) <= 10
    assert len(own_pairs) <= 5
    labels, twice, wrong = planted(X, y, np.random.default_rng(1), 60, 30)
    found = recall_and_precision(audit_gallery(X, labels, threads=1), twice, wrong, own_samples, own_pairs)
    recall_of_swaps, precision_of_swaps, recall_of_duplicates, precision_of_duplicates = found
    assert min(recall_of_swaps, recall_of_duplicates) >= 0.95
    assert min(precision_of_swaps, precision_of_duplicates) >= 0.9
