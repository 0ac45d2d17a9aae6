"""Photographs as the page shows them: the picture, a box around each face, and what was answered about it."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from holue.embedding.faces.face import Face
from holue.embedding.faces.measures import in_words
from holue.service.galleries.pictures import shown_photograph
from holue.service.galleries.sent_files import SentFiles
from holue.service.ledger.images import Image
from holue.service.page.rendering import HEADERS

SHOWN, LONGEST = 24, 640
"""Photographs of one screen, and pixels of their longer side; the table has all answers."""
POLICY = HEADERS["Content-Security-Policy"].replace("img-src 'self'", "img-src 'self' data:")
"""The photographs are in the page itself: so the service does not have to keep them until the browser asks for them."""
SIGNS = {"rejected": "∅", "filtered": "?"}
LABEL = 24
"""Letters beside a box."""


def photographs(
    sent: SentFiles, made_of: tuple[tuple[int, ...], ...], answers: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The first photographs with their faces, those that have one; boxes are in pixels of the upright original."""
    if sent.embedded.faces is None:
        return []
    faces: dict[int, list[dict[str, Any]]] = {}
    for rows, answer in zip(made_of, answers):
        for row in rows:
            faces.setdefault(sent.embedded.file[row], []).append(_face(sent, row, answer))
    return [_photograph(sent.names[place], sent.contents[place], found) for place, found in list(faces.items())[:SHOWN]]


def quality(sent: SentFiles, rows: Sequence[int]) -> str | None:
    """How good a probe is, in words: its first face, or how much speech it has; None where neither was looked for."""
    if sent.embedded.windows is not None:
        windows = [sent.embedded.windows[row] for row in rows]
        seconds = sum(window.end - window.start for window in windows)
        return f"{seconds:.1f} s of speech in {len(windows)} window{'s' * (len(windows) > 1)}"
    measures = sent.measures(rows[0])
    return None if measures is None else in_words(measures)


def in_page(picture: Image) -> str:
    """The address of a picture that is in the page itself."""
    return f"data:{picture.media_type};base64,{base64.b64encode(picture.content).decode()}"


def found_faces(name: str, content: bytes, faces: Sequence[Face]) -> dict[str, Any]:
    """A photograph with the numbers of its faces, before anything is known about them."""
    boxes = [
        {"number": number, **_box(face), "label": "", "decision": "found"} for number, face in enumerate(faces, start=1)
    ]
    return _photograph(name, content, boxes)


def _photograph(name: str, content: bytes, faces: list[dict[str, Any]]) -> dict[str, Any]:
    picture, (width, height) = shown_photograph(content, LONGEST)
    for (
        face
    ) in faces:  # a label begins at the left edge of its box, or ends at the right one where it would leave the picture
        left = face["x"] + face["width"] / 2 < 0.6 * width
        face |= {"anchor": "start" if left else "end", "label_x": face["x"] + (0 if left else face["width"])}
    return {
        "name": name, "width": width, "height": height, "letter": round(max(width, height) / 22, 1), "faces": faces,
        "picture": in_page(picture),
    }  # fmt: skip


def _face(sent: SentFiles, row: int, answer: dict[str, Any]) -> dict[str, Any]:
    assert sent.embedded.faces is not None
    found = sent.embedded.faces[row]
    label = answer["verdict"] if answer["decision"] == "accepted" else SIGNS.get(answer["decision"], "!")
    return {"number": found.number, **_box(found.face), "label": shortened(label), **answer}


def _box(face: Face) -> dict[str, float]:
    return dict(zip(("x", "y", "width", "height"), (round(float(edge), 1) for edge in face.box)))


def shortened(text: str) -> str:
    """A label that does not cover the neighbours."""
    return text if len(text) <= LABEL else f"{text[: LABEL - 1]}…"
