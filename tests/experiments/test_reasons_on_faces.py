"""Reasons on real faces: a face shrunk to a few pixels is told that it is a poor sample, a clean one is not."""

import os
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from holue import UNKNOWN, OpenSetRecognizer

ROOT = Path(__file__).parents[2]
FACES = Path(os.environ.get("HOLUE_DATA", ROOT.parent / "shared" / "data")) / "lfw" / "aligned112.zip"
MODEL = Path(os.environ.get("HOLUE_MODELS", ROOT.parent / "shared" / "models")) / "arcface_mbf.onnx"
PEOPLE = 70


@pytest.mark.data
@pytest.mark.skipif(not (FACES.exists() and MODEL.exists()), reason="needs LFW and the face model, see HOLUE_DATA")
def test_shrunken_faces_are_poor_samples_and_clean_ones_are_not() -> None:
    Image = pytest.importorskip("PIL.Image")
    from holue.embedding.heads.norm_concentration import NormConcentration
    from holue.embedding.models.embedder import OnnxEmbedder

    with zipfile.ZipFile(FACES) as archive:
        by_person: dict[str, list[str]] = {}
        for name in sorted(n for n in archive.namelist() if n.endswith(".jpg")):
            by_person.setdefault(name.split("/")[0], []).append(name)
        several = [names for names in by_person.values() if len(names) >= 2][:PEOPLE]
        alone = [names for names in by_person.values() if len(names) == 1][:PEOPLE]

        def pixels(name: str, size: int) -> np.ndarray:
            face = Image.open(BytesIO(archive.read(name))).convert("RGB")
            return np.asarray(face.resize((size, size), Image.BILINEAR).resize((112, 112), Image.BILINEAR))

        enrolled = [pixels(names[0], 112) for names in several]
        probes = [pixels(names[1], size) for size in (112, 16) for names in several]
        strangers = [pixels(names[0], size) for size in (112, 16) for names in alone]
    file = OnnxEmbedder.open("arcface").embed_arrays(enrolled + probes + strangers)
    embeddings = file.embeddings.astype(np.float64)
    shown, y = embeddings[PEOPLE:], np.r_[np.tile(np.arange(PEOPLE), 2), np.full(2 * PEOPLE, -1)]
    norms = NormConcentration.fit(embeddings[: 3 * PEOPLE], np.tile(np.arange(PEOPLE), 3))
    kappa = norms.transform(shown)
    labels = np.where(y < 0, UNKNOWN, y.astype(object))
    recognizer = OpenSetRecognizer("holue-plus", target_fpir=0.05).fit(embeddings[:PEOPLE], np.arange(PEOPLE))
    recognizer.calibrate(shown, labels, kappa)
    reasons = recognizer.identify(shown, kappa).reason
    clean = np.tile(np.repeat([True, False], PEOPLE), 2)
    poor = np.char.startswith(reasons, "poor sample")
    assert poor[~clean].mean() > 0.3
    assert poor[clean].mean() < 0.05
