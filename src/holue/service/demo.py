"""Demo: the glyph world as a gallery: characters enrolled, and calibrated on other characters."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from holue.datasets.glyphs.model import glyph_embedder
from holue.datasets.glyphs.rendering import Pixels
from holue.datasets.glyphs.world import glyph_world
from holue.live.opening import open as open_gallery
from holue.recognition.answer.identifications import Identifications
from holue.service.galleries.answered import Answered
from holue.service.galleries.answers import answer_documents
from holue.service.galleries.embedder import FileEmbedder
from holue.service.galleries.follow_up import keep_for_people
from holue.service.galleries.probes import Probes
from holue.service.ledger.images import Image, Of
from holue.service.ledger.ledger import Ledger
from holue.service.page.playground import Playground
from holue.service.page.try_it import SHOWN, TryIt
from holue.service.service import Service
from holue.service.settings import LimitSettings
from holue.store.sqlite.home import DATABASE

NAME = "demo"
SUBJECTS, SEED = 300, 0
QUEUED = 200
"""Probes that are asked about before the demo starts."""
METHOD, TARGET_FPIR = "holue-plus", 0.1
FILTER_BELOW = 0.6
"""Answers less probable than this are for a person to decide."""


def make_demo_gallery(folder: Path, *, subjects: int = SUBJECTS) -> Path:
    """A directory with the gallery ``demo``, made where it is not there yet; returns the directory."""
    home = folder / NAME
    if not (home / DATABASE).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        # Made beside it and moved: an interrupted start leaves no gallery that is not calibrated.
        with tempfile.TemporaryDirectory(dir=folder, prefix=".demo-") as staging:
            _enrol(Path(staging) / NAME, subjects)
            _keep_pictures(Path(staging) / NAME, subjects)
            (Path(staging) / NAME).rename(home)
    return folder


def _enrol(home: Path, subjects: int) -> None:
    embedder = glyph_embedder()
    world = glyph_world(SEED, subjects=subjects)
    enrolled, others = embedder.embed(world.evaluation.gallery), embedder.embed(world.development.probes)
    # More characters are enrolled than calibrated on, and strangers find look-alikes more easily: the threshold follows them.
    settings: dict[str, Any] = {
        "method": METHOD,
        "target_fpir": TARGET_FPIR,
        "hold": "fpir",
        "random_state": SEED,
        "filter_below": FILTER_BELOW,
    }
    model = embedder.embedder.fingerprint
    with open_gallery(home, create=True, dim=enrolled.directions.shape[1], model=model, **settings) as gallery:
        names = {glyph.label: {"name": glyph.name} for glyph in world.evaluation.known}
        gallery.enroll(
            enrolled.directions, enrolled.subject_id.tolist(), concentration=enrolled.concentration,
            origin=enrolled.file.sample_id.tolist(), metadata=names, by="demo",
        )  # fmt: skip
        others_gallery = embedder.embed(world.development.gallery)
        gallery.calibrate(
            others.directions, others.subject_id, others.concentration,
            gallery=(others_gallery.directions, others_gallery.subject_id), by="demo",
        )  # fmt: skip


def _keep_pictures(home: Path, subjects: int) -> None:
    """The demo's gallery keeps pictures: those of the enrolled samples, in the order they were enrolled."""
    images = glyph_world(SEED, subjects=subjects).evaluation.gallery.images
    with Ledger.open(home) as ledger:
        ledger.images.start_keeping()
        ledger.images.put(Of.SAMPLE, {number: picture_of(image) for number, image in enumerate(images, start=1)})


def queue_examples(service: Service, *, probes: int = QUEUED) -> None:
    """Ask about degraded characters, so that the uncertain ones wait for a reviewer."""
    opened, glyphs = service.galleries.get(NAME), glyph_embedder()
    if any(opened.ledger.reviews.counts().values()):
        return
    images = glyph_world(SEED, subjects=len(opened.live)).evaluation.probes.images
    chosen = images[np.random.default_rng(SEED).permutation(len(images))[:probes]]
    embedded = glyphs.embed(chosen)
    asked = Probes(embedded.directions, embedded.concentration)
    version = opened.live.current
    answered = Answered(
        version, version.identify(asked.rows, asked.concentration, top_k=SHOWN + 1), 0.0, 0.0, len(asked)
    )
    documents = answer_documents(opened, version, asked, answered.answers, ["demo"] * len(asked))
    keep_for_people(opened, answered, asked, documents, range(len(documents)))
    opened.ledger.images.put(
        Of.REVIEW,
        {
            int(document["review_id"].rpartition(".")[2]): picture_of(image)
            for document, image in zip(documents, chosen)
            if document["review_id"] is not None
        },
    )


def picture_of(image: Pixels) -> Image:
    """A glyph as PNG, three times as large."""
    from PIL import Image as Pillow

    stream = io.BytesIO()
    Pillow.fromarray(np.kron(image, np.ones((3, 3), np.uint8))).save(stream, "PNG")
    return Image("image/png", stream.getvalue())


def playing(service: Service) -> TryIt:
    """The screen on which visitors draw, choose and spoil characters, answered by the demo's gallery."""
    glyphs, opened = glyph_embedder(), service.galleries.get(NAME)

    def identify(images: Pixels) -> Identifications:
        embedded = glyphs.embed(images)
        return opened.live.identify(embedded.directions, embedded.concentration, top_k=SHOWN + 1)

    enrolled = len(opened.live)
    return TryIt(Playground(glyph_world(SEED, subjects=enrolled).evaluation), identify, NAME)


def glyph_files(limits: LimitSettings) -> FileEmbedder:
    """Pictures of characters to embeddings and concentrations, by the model that comes with the package."""
    glyphs = glyph_embedder()
    head = glyphs.heads["scf"]
    return FileEmbedder(glyphs.embedder, limits, lambda file: head.predict_file(file).astype(np.float64))
