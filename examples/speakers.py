"""Speakers: whole sentences enrolled, short and noisy cuts searched for. How many errors are left if some answers are set aside?

Run: python examples/speakers.py (needs: pip install 'holue[embed,report]'). It reads speechocean762 and a CAM++ model where
HOLUE_DATA and HOLUE_MODELS point; without them, characters of the glyph world stand in for voices.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
from common import OUT, Part, Task, cached_embedder, glyph_task, missing, norm_concentration, read_members, read_rows

from holue import OpenSetRecognizer
from holue.datasets.degradation import LABEL_SEPARATOR, draw_speech_degradation, sample_generator
from holue.datasets.directory import data_directory
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.evaluation.report.drawing import GREEN, GREY, VERMILLION, look, new_figure

VOICES, MODEL = "speechocean/utterances.zip", "campplus"
SPEAKERS, ENROLLED, SEARCHED = 160, 3, 3
SET_ASIDE = 0.2


def speakers_task() -> Task:
    """Of every second speaker three sentences are enrolled; of all 160, cuts of three other sentences are searched for."""
    archive, embedder = data_directory() / VOICES, cached_embedder(MODEL)
    sentences = defaultdict(list)
    for row in read_rows(archive.with_name("utterances.csv")):
        sentences[row["speaker"]].append(row["file"])
    speakers = sorted(sentences)[:SPEAKERS]

    def embed(names: list[str], waveforms: list[object]) -> EmbeddingFile:
        return embedder.embed_arrays(waveforms, sample_id=names, subject_id=[name.split("/")[0] for name in names])

    def part(half: slice) -> Part:
        enrolled = [name for who in speakers[half][::2] for name in sentences[who][:ENROLLED]]
        searched = [name for who in speakers[half] for name in sentences[who][ENROLLED : ENROLLED + SEARCHED]]
        cuts, level = [], []
        for name, waveform in zip(searched, read_members(archive, searched, embedder)):
            rng = sample_generator(0, 0, name)  # every sentence has its own: the same cut in every run
            damage = draw_speech_degradation(rng)
            cuts.append(damage.apply(waveform, rng))
            level.append(damage.label)
        return Part(embed(enrolled, read_members(archive, enrolled, embedder)), embed(searched, cuts), np.array(level))

    return Task(part(slice(0, SPEAKERS // 2)), part(slice(SPEAKERS // 2, None)), {})


def main() -> None:
    absent = missing(VOICES, MODEL)
    task = speakers_task() if absent is None else glyph_task(absent)
    development, evaluation = task.development, task.evaluation
    norm = norm_concentration(development)

    # 1. Enrol and calibrate. Several sentences of one speaker become one template, their mean direction.
    recognizer = OpenSetRecognizer(target_fpir=0.1)
    recognizer.fit(evaluation.gallery.embeddings, evaluation.gallery.subject_id)
    probes, gallery = development.probes, (development.gallery.embeddings, development.gallery.subject_id)
    sharpness = norm.transform(probes.embeddings)
    recognizer.calibrate(probes.embeddings, probes.subject_id, sharpness, gallery=gallery)
    print(recognizer.operating_point_, end="\n\n")

    # 2. Decide beforehand, on the development speakers, below which quality an answer is set aside. Here: so that a fifth of
    #    theirs would be. For a promise about the errors that remain, see RiskController (docs/risk-control.md).
    rehearsal = OpenSetRecognizer(target_fpir=0.1).fit(*gallery)
    rehearsal.calibrate(probes.embeddings, probes.subject_id, sharpness)
    bound = float(np.quantile(rehearsal.identify(probes.embeddings, sharpness).quality, SET_ASIDE))
    recognizer.set_params(filter_below=bound)

    # 3. Ask. A filtered answer names nobody, and the caller asks for another sentence.
    probes = evaluation.probes
    answers = recognizer.identify(probes.embeddings, norm.transform(probes.embeddings))
    # What it would have said without the bound: predict never filters.
    right = recognizer.predict(probes.embeddings) == evaluation.truth
    kept = ~answers.filtered
    print(f"{(~right).mean():.1%} of {len(answers)} answers would be wrong.")
    print(
        f"With the {1 - kept.mean():.0%} below quality {bound:.2f} set aside, {(~right[kept]).mean():.1%} of the others are;"
    )
    print(f"among those set aside, {(~right[~kept]).mean():.1%} would have been.\n")

    # 4. Why? The first word of a level is how long the cut was (or how small the character).
    first = np.array([level.split(LABEL_SEPARATOR)[0] for level in evaluation.level])
    levels = sorted(set(first), key=lambda text: float(text.split()[0]))
    print("sample   right   set aside")
    for level in levels:
        rows = first == level
        print(f"{level:6}  {right[rows].mean():6.0%}  {answers.filtered[rows].mean():9.0%}")
    print(f"Picture: {draw(answers.uncertainty, right, first, levels)}")


def draw(uncertainty: np.ndarray, right: np.ndarray, first: np.ndarray, levels: list[str]) -> Path:
    """Errors left against answers set aside, and how uncertain right and wrong answers are at each level."""
    path = OUT / "speakers.png"
    with look("speakers"):
        figure, (curve, strips) = new_figure(10, 4, columns=2)
        wrong = ~right[np.argsort(-uncertainty, kind="stable")]
        left = wrong[::-1].cumsum()[::-1] / np.arange(len(wrong), 0, -1)
        share = np.arange(len(wrong)) / len(wrong)
        shown = share <= 0.7  # beyond it, the rate is that of a few answers
        curve.plot(share[shown], left[shown], color=GREEN, label="least certain first")
        curve.axhline(wrong.mean(), color=GREY, linestyle="--", label="at random")
        curve.set(xlabel="share of the answers set aside", ylabel="wrong among the others", ylim=(0, None))
        curve.legend()
        rng = np.random.default_rng(0)
        for is_right, color, label in ((True, GREEN, "right"), (False, VERMILLION, "wrong")):
            rows = right == is_right
            place = np.array([levels.index(text) for text in first[rows]]) + (-0.17 if is_right else 0.17)
            scatter = rng.uniform(-0.1, 0.1, rows.sum())
            strips.plot(place + scatter, uncertainty[rows], "o", color=color, markersize=3, alpha=0.7, label=label)
        strips.set_xticks(range(len(levels)), levels)
        strips.set(ylabel="uncertainty of the answer", xlabel="sample")
        strips.legend()
    OUT.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


if __name__ == "__main__":
    main()
