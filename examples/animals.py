"""Animals: a model of human faces meets chimpanzees. Half of its answers are wrong; which short list holds the truth?

Run: python examples/animals.py (needs: pip install 'holue[embed,report]'). It reads the chimpanzee faces C-Tai and C-Zoo and an
ArcFace model where HOLUE_DATA and HOLUE_MODELS point; without them, characters of the glyph world stand in for animals.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
from common import (
    Part,
    Task,
    cached_embedder,
    draw_answers,
    from_certain_to_uncertain,
    glyph_task,
    missing,
    print_answers,
    read_members,
    read_rows,
)
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline

from holue import OpenSetRecognizer
from holue.datasets.directory import data_directory

FACES, MODEL = "chimpanzees/faces112.zip", "arcface"
KNOWN, LEARNT, SEARCHED = 44, 22, 8


def animals_task() -> Task:
    """44 animals are known by 22 images each, half of them for calibration; 8 others of each, and strangers, are searched for."""
    archive, embedder = data_directory() / FACES, cached_embedder(MODEL)
    images, size = defaultdict(list), {}
    for row in read_rows(archive.with_name("labels.csv")):
        images[f"{row['subset']}/{row['identity']}"].append(row["file"])
        size[row["file"]] = f"{min(int(row['orig_w']), int(row['orig_h']))} px"
    rng = np.random.default_rng(0)
    chosen = {who: rng.permutation(some)[: LEARNT + SEARCHED].tolist() for who, some in sorted(images.items())}
    order = rng.permutation([who for who in chosen if len(chosen[who]) == LEARNT + SEARCHED]).tolist()
    known, strangers = order[:KNOWN], order[KNOWN:]
    names = [name for who in order for name in chosen[who][0 if who in known else LEARNT :]]
    owner = {name: who for who in order for name in chosen[who]}
    pictures = dict(zip(names, read_members(archive, names, embedder)))
    file = embedder.embed_arrays(list(pictures.values()), sample_id=names, subject_id=[owner[name] for name in names])

    # The model never saw an ape: as they are, its vectors hardly tell one from another. What it computes on the way to them
    # does, once the differences between animals are told from those between images of one animal. (With torch, holue train
    # arcface learns such a head; a linear discriminant is as good for so few images.)
    learnt = np.isin(file.sample_id, [name for who in known for name in chosen[who][:LEARNT]])
    discriminant = make_pipeline(PCA(300, random_state=0), LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.3))
    discriminant.fit(file.features[learnt], file.subject_id[learnt])
    file = replace(file, embeddings=discriminant.transform(file.features))

    def part(half: slice) -> Part:
        enrolled = learnt & np.isin(file.subject_id, known[half])
        searched = ~learnt & np.isin(file.subject_id, known[half] + strangers[half])
        return Part(
            file.take(enrolled), file.take(searched), np.array([size[name] for name in file.sample_id[searched]])
        )

    return Task(part(slice(0, None, 2)), part(slice(1, None, 2)), pictures)


def main() -> None:
    absent = missing(FACES, MODEL)
    task = animals_task() if absent is None else glyph_task(absent)
    development, evaluation = task.development, task.evaluation

    # 1. Enrol and calibrate. No concentrations this time: the length of these vectors says nothing about the image, and
    #    holue-plus reads the two other causes of doubt without them.
    recognizer = OpenSetRecognizer(target_fpir=0.2)
    recognizer.fit(evaluation.gallery.embeddings, evaluation.gallery.subject_id)
    probes = development.probes
    gallery = (development.gallery.embeddings, development.gallery.subject_id)
    recognizer.calibrate(probes.embeddings, probes.subject_id, gallery=gallery)
    print(recognizer.operating_point_, end="\n\n")

    # 2. One answer each: often wrong, and it knows.
    probes = evaluation.probes
    answers = recognizer.identify(probes.embeddings, top_k=4)
    right = answers.subject == evaluation.truth
    rows = from_certain_to_uncertain(answers, 8)
    print_answers(answers, evaluation, rows)
    print(f"\n{right.mean():.0%} of {len(answers)} answers are right. From the least to the most certain fifth:")
    fifths = np.array_split(np.argsort(-answers.uncertainty, kind="stable"), 5)
    print("  ".join(f"{right[fifth].mean():.0%}" for fifth in fifths))

    # 3. A short list instead: all answers that remain possible, "nobody enrolled" among them. About nine of ten
    #    lists hold the truth, however poor the recogniser is; it is their length that tells how poor.
    sets = recognizer.predict_set(probes.embeddings, confidence_level=0.9)
    held = sets.contain(evaluation.truth)
    print(f"\n{sets}\nThe truth is in {held.mean():.0%} of the lists.")
    print(f"Picture: {draw_answers('animals', task, answers, rows[::-1][:6][::-1])}")


if __name__ == "__main__":
    main()
