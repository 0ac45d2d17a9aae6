"""SentFiles: the files of a request, their embeddings, and where in a photograph each face is."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from holue.embedding.faces.choice import FaceChoiceError, as_choice
from holue.embedding.faces.face import listed
from holue.errors import InvalidInputError
from holue.service.galleries.embedder import (
    EVERY_FACE,
    ONE_FACE,
    Embedded,
    Embedder,
    NoFaceError,
    NoSpeechError,
    SentFile,
)
from holue.service.galleries.pictures import crop_picture, thumbnail
from holue.service.http.problems import ProblemError, shown
from holue.service.ledger.images import Image

FACE = "face"
"""The form field that says which face of a photograph is meant; once for all files, or once for each in their order."""


@dataclass(frozen=True)
class ReceivedFiles:
    """Names and contents as they came, and which faces were asked for."""

    names: tuple[str, ...]
    contents: tuple[bytes, ...]
    faces: tuple[str, ...] = ()

    def embedded(self, embedder: Embedder, *, every_face: bool) -> SentFiles:
        """The same with their embeddings; a problem where a photograph has no face, or does not say which of several is meant."""
        files = [
            SentFile(f"file {place} ({shown(name)})", content, which)
            for place, (name, content, which) in enumerate(
                zip(self.names, self.contents, self._choices(embedder, every_face), strict=True)
            )
        ]
        try:
            return SentFiles(self.names, self.contents, embedder.embed(files), embedder.kind)
        except FaceChoiceError as error:
            raise which_face(error) from error
        except NoFaceError as error:
            raise ProblemError(
                422, "no-face", str(error).partition("; ")[0], field="file", rule="a photograph that shows a face",
                way_out="send one that shows a face of at least 25 pixels, upright",
            ) from error  # fmt: skip
        except NoSpeechError as error:
            raise ProblemError(
                422, "no-speech", str(error).partition("; ")[0], field="file", rule="a recording in which somebody speaks",
                way_out="send one with at least 1.2 seconds of speech",
            ) from error  # fmt: skip

    def _choices(self, embedder: Embedder, every_face: bool) -> Sequence[str | int]:
        count = Counter(self.names)
        if not self.faces:
            return [EVERY_FACE if every_face and count[name] == 1 else ONE_FACE for name in self.names]
        if not embedder.finds_faces:
            raise _wrong_choice("faces are not looked for here", self.faces[0], "set embedder.detect in the settings")
        if len(self.faces) not in (1, len(self.names)):
            raise _wrong_choice(
                f"{FACE} is given {len(self.faces)} times for {len(self.names)} files", len(self.faces),
                "give it once, or once for each file",
            )  # fmt: skip
        try:
            chosen = [as_choice(each) for each in self.faces]
        except InvalidInputError as error:
            raise _wrong_choice(str(error), self.faces[0], "send a number from the left, largest or central") from error
        return chosen * len(self.names) if len(chosen) == 1 else chosen


@dataclass(frozen=True, eq=False)
class SentFiles:
    """Files with their embeddings."""

    names: tuple[str, ...]
    contents: tuple[bytes, ...]
    embedded: Embedded
    kind: str  # image or speech

    def name(self, row: int) -> str:
        """The name of the file that a row comes from."""
        return self.names[self.embedded.file[row]]

    def key(self, row: int) -> tuple[str, int]:
        """Rows of one key are samples of one probe: files of one name, one face of a photograph, or all speech of a recording."""
        name, faces = self.name(row), self.embedded.faces
        return name, 0 if faces is None or self._count[name] > 1 else faces[row].number

    @cached_property
    def _count(self) -> Counter[str]:
        return Counter(self.names)

    @property
    def without(self) -> list[str]:
        """The names of the files in which no face, or no speech, was found."""
        return [self.names[place] for place in self.embedded.without]

    @property
    def without_face(self) -> list[str]:
        """The names of the photographs in which no face was found."""
        return self.without if self.embedded.faces is not None else []

    @property
    def without_speech(self) -> list[str]:
        """The names of the recordings in which no speech was found."""
        return self.without if self.embedded.windows is not None else []

    @property
    def medium(self) -> list[str] | None:
        """The recording of each row, where speech was cut into windows: they count as one. A recording sent twice is one."""
        if self.embedded.windows is None:
            return None
        digests = [hashlib.sha256(content).hexdigest()[:16] for content in self.contents]
        return [f"recording {digests[place]}" for place in self.embedded.file]

    def measures(self, row: int) -> dict[str, float] | None:
        """What makes a face poor: size, pose, sharpness, detector score."""
        return None if self.embedded.faces is None else self.embedded.faces[row].measures

    def window(self, row: int) -> dict[str, Any] | None:
        """Where the speech of a row is, as it is sent; None where speech was not looked for."""
        if self.embedded.windows is None:
            return None
        found = self.embedded.windows[row]
        return {
            "file": self.name(row), "start": round(found.start, 2), "end": round(found.end, 2),
            "speech": round(found.speech, 4),
        }  # fmt: skip

    def face(self, row: int) -> dict[str, Any] | None:
        """Where the face of a row is, as it is sent; None where faces were not looked for."""
        if self.embedded.faces is None:
            return None
        found = self.embedded.faces[row]
        return {
            "file": self.name(row), "number": found.number, "box": [round(float(edge), 1) for edge in found.face.box],
            "measures": {name: round(value, 4) for name, value in found.measures.items()},
        }  # fmt: skip

    def picture(self, row: int) -> Image:
        """A small picture: the aligned face, or the image."""
        faces = self.embedded.faces
        return thumbnail(self.contents[self.embedded.file[row]]) if faces is None else crop_picture(faces[row].crop)


async def read_files(request: Request, most: int) -> ReceivedFiles:
    """The files of a multipart body, and its field ``face``."""
    try:
        form = await request.form(max_files=most, max_fields=most + 16)
    except (MultiPartException, ValueError, KeyError) as error:
        raise ProblemError(
            400, "invalid-multipart", f"the body is not multipart/form-data: {error}", field="body",
            way_out="send files as curl -F name=@file does",
        ) from None  # fmt: skip
    try:
        files = [(name, part) for name, part in form.multi_items() if isinstance(part, UploadFile)]
        faces = tuple(value for value in form.getlist(FACE) if isinstance(value, str))
        if not files:
            raise ProblemError(
                422, "no-probes", "the body holds no file", field="body", rule=f"1 to {most} files", value=0,
                way_out="send files as curl -F name=@file does",
            )  # fmt: skip
        return ReceivedFiles(tuple(name for name, _ in files), tuple([await part.read() for _, part in files]), faces)
    finally:
        await form.close()


def which_face(error: FaceChoiceError) -> ProblemError:
    """The problem of a photograph that does not say whose face is meant; it lists the faces."""
    return ProblemError(
        422, "which-face", f"{error.origin}: {len(error.faces)} faces ({listed(error.faces)})", field=FACE,
        rule="one face in the photograph, or the field face says which", value=len(error.faces),
        way_out="send the form field face with a number from the left, largest or central",
    )  # fmt: skip


def _wrong_choice(detail: str, value: Any, way_out: str) -> ProblemError:
    return ProblemError(
        422, "invalid-face", detail, field=FACE, rule="a number from the left, from 1, largest or central", value=value,
        way_out=way_out,
    )  # fmt: skip
