"""Faces: clean photographs enrolled, poor ones searched for. Which answers can be trusted, and why not the others?

Run: python examples/faces.py (needs: pip install 'holue[embed,report]'). It reads Labelled Faces in the Wild and an ArcFace model
where HOLUE_DATA and HOLUE_MODELS point; without them, characters of the glyph world stand in for faces.
"""

from __future__ import annotations

import zipfile
from collections import defaultdict

import numpy as np
from common import (
    Part,
    Task,
    cached_embedder,
    draw_answers,
    from_certain_to_uncertain,
    glyph_task,
    missing,
    norm_concentration,
    print_answers,
    read_members,
)

from holue import OpenSetRecognizer
from holue.datasets.degradation import draw_image_degradation, sample_generator
from holue.datasets.directory import data_directory

FACES, MODEL = "lfw/aligned112.zip", "arcface"
PEOPLE, STRANGERS, PHOTOGRAPHS = 100, 140, 4


def faces_task() -> Task:
    """Of 100 people one photograph is enrolled and three are searched for, made poor; 140 strangers are searched for too."""
    archive = data_directory() / FACES
    with zipfile.ZipFile(archive) as opened:
        photographs = defaultdict(list)
        for name in sorted(name for name in opened.namelist() if name.endswith(".jpg")):
            photographs[name.split("/")[0]].append(name)
    people = [who for who in photographs if len(photographs[who]) >= PHOTOGRAPHS][:PEOPLE]
    strangers = [who for who in photographs if len(photographs[who]) == 1][:STRANGERS]
    embedder, pictures = cached_embedder(MODEL), {}

    def embed(names: list[str]) -> object:
        return embedder.embed_arrays(
            [pictures[name] for name in names], sample_id=names, subject_id=[name.split("/")[0] for name in names]
        )

    def part(half: slice) -> Part:
        enrolled = [photographs[who][0] for who in people[half]]
        searched = [name for who in people[half] for name in photographs[who][1:PHOTOGRAPHS]]
        searched += [photographs[who][0] for who in strangers[half]]
        pictures.update(zip(enrolled, read_members(archive, enrolled, embedder)))
        level = []
        for name, image in zip(searched, read_members(archive, searched, embedder)):
            rng = sample_generator(0, 0, name)  # every photograph has its own: the same damage in every run
            damage = draw_image_degradation(rng)
            pictures[name] = damage.apply(image, rng)
            level.append(damage.label)
        return Part(embed(enrolled), embed(searched), np.array(level))

    return Task(part(slice(0, None, 2)), part(slice(1, None, 2)), pictures)


def main() -> None:
    absent = missing(FACES, MODEL)
    task = faces_task() if absent is None else glyph_task(absent)
    development, evaluation = task.development, task.evaluation

    # 1. How sharp is each sample? A face model makes short vectors of poor faces. How short means how poor is learnt from
    #    the development people, whose names are known; an SCF head (holue train scf) would say it more exactly.
    norm = norm_concentration(development)

    # 2. Enrol. Nothing is learnt here: a template per person.
    recognizer = OpenSetRecognizer(target_fpir=0.05)
    recognizer.fit(evaluation.gallery.embeddings, evaluation.gallery.subject_id)

    # 3. Calibrate on *other* people: their strangers set the threshold, their errors teach what an error looks like.
    probes = development.probes
    recognizer.calibrate(
        probes.embeddings,
        probes.subject_id,
        norm.transform(probes.embeddings),
        gallery=(development.gallery.embeddings, development.gallery.subject_id),
    )
    print(recognizer.operating_point_, end="\n\n")

    # 4. Ask, for every probe, who it is.
    probes = evaluation.probes
    answers = recognizer.identify(probes.embeddings, norm.transform(probes.embeddings), top_k=3)
    right = answers.subject == evaluation.truth

    # 5. Trust. The reason says what to do about an answer: a better photograph, a second look at two people, or nothing.
    rows = from_certain_to_uncertain(answers, 8)
    print_answers(answers, evaluation, rows)
    certain = answers.uncertainty <= np.median(answers.uncertainty)
    print(f"\n{right.mean():.0%} of {len(answers)} answers are right:")
    print(f"{right[certain].mean():.0%} of the more certain half, {right[~certain].mean():.0%} of the other.")
    print(f"Picture: {draw_answers('faces', task, answers, rows[-6:])}")


if __name__ == "__main__":
    main()
