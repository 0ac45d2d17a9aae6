"""Probabilities and reasons on real faces: at the threshold, and half-way between two templates."""

import numpy as np
import pytest

from holue import OpenSetRecognizer
from holue.datasets.directory import data_directory
from holue.evaluation.metrics.calibration_error import expected_calibration_error
from holue.experiments.answer_study import count_causes

FACES = data_directory() / "lfw" / "arcface_mbf.npz"


@pytest.mark.data
@pytest.mark.skipif(not FACES.exists(), reason="needs the embeddings of LFW, see HOLUE_DATA")
def test_faces_at_the_threshold_and_between_two_people_are_told_so_and_probabilities_come_true() -> None:
    with np.load(FACES) as file:
        X, person = file["embeddings"].astype(np.float64), file["subject_id"].astype(str)
    names, number, count = np.unique(person, return_inverse=True, return_counts=True)
    rng = np.random.default_rng(0)
    half = rng.random(len(names)) < 0.5  # development people; the others are enrolled
    rank = np.zeros(len(person), dtype=int)
    for place in range(1, len(person)):
        rank[place] = rank[place - 1] + 1 if person[place] == person[place - 1] else 0
    enrolled, searched = (count[number] > 1) & (rank == 0), (count[number] == 1) | ((rank > 0) & (rank < 6))
    parts = [(side & enrolled, side & searched) for side in (half[number], ~half[number])]
    (dev_gallery, dev_probes), (gallery, probes) = parts
    recognizer = OpenSetRecognizer("holue-plus", hold="fpir").fit(X[gallery], person[gallery])
    recognizer.calibrate(X[dev_probes], person[dev_probes], gallery=(X[dev_gallery], person[dev_gallery]))
    answers = recognizer.identify(X[probes])

    near = np.abs(answers.score - recognizer.operating_point_.threshold) < 0.01
    assert count_causes(answers.reason[near])["boundary"] >= 0.9 * near.sum() > 0
    templates = recognizer.gallery_.directions.astype(np.float64)
    pairs = rng.integers(len(templates), size=(500, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    half_way = recognizer.identify(templates[pairs[:, 0]] + templates[pairs[:, 1]])
    assert (half_way.uncertainty > 0.499).all()
    assert count_causes(half_way.reason)["look-alike"] >= 0.9 * len(half_way)

    best = answers.candidate_subjects[:, 0] == person[probes]
    assert expected_calibration_error(answers.p_subject, correct=best) <= 0.03
    assert expected_calibration_error(answers.p_unknown, correct=~np.isin(person[probes], person[gallery])) <= 0.03
