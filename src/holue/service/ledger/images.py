"""Images: small pictures of samples and of reviewed probes, in galleries that were made to keep them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import sqlalchemy as sql

from holue.errors import InvalidParameterError
from holue.live.protection import Rotation
from holue.service.ledger.database import Database
from holue.service.ledger.parts import parts
from holue.service.ledger.tables import IMAGES, META

SETTING = "keep_images"
LARGEST = 2**20
"""Bytes of one picture."""
MEDIA_TYPES = ("image/png", "image/jpeg")


class Of(Enum):
    """What a picture shows."""

    SAMPLE = "sample"
    REVIEW = "review"


@dataclass(frozen=True)
class Image:
    """An encoded picture."""

    media_type: str
    content: bytes


class Images:
    """The pictures in a ledger. Where the gallery was not made to keep pictures, none is kept.

    ``rotation`` is that of a protected gallery: its key covers the pictures too.

    >>> with Database.of_gallery(":memory:") as database:
    ...     images = Images(database)
    ...     kept_before = images.kept
    ...     images.start_keeping()
    ...     images.put(Of.SAMPLE, {1: Image("image/png", b"picture")})
    ...     kept_before, images.kept, images.get(Of.SAMPLE, 1).content
    (False, True, b'picture')
    """

    def __init__(self, database: Database, *, rotation: Rotation | None = None) -> None:
        self._database, self._rotation = database, rotation

    @property
    def kept(self) -> bool:
        """Whether this gallery keeps pictures."""
        query = sql.select(META.c.value).where(META.c.key == SETTING)
        with self._database.reading() as connection:
            value = connection.execute(query).scalar_one_or_none()
        return value is not None and bool(json.loads(value))

    def start_keeping(self) -> None:
        """Keep pictures from now on: chosen when a gallery is made."""

        def keep(connection: sql.Connection) -> None:
            connection.execute(sql.delete(META).where(META.c.key == SETTING))
            connection.execute(sql.insert(META), [{"key": SETTING, "value": "true"}])

        self._database.writing(keep)

    def put(self, of: Of, pictures: Mapping[int, Image]) -> None:
        """Keep pictures under the numbers of samples or reviews."""
        if not pictures or not self.kept:
            return
        for number, image in pictures.items():
            if image.media_type not in MEDIA_TYPES:
                raise InvalidParameterError(f"picture {number} is {image.media_type!r}; keep PNG or JPEG")
            if len(image.content) > LARGEST:
                raise InvalidParameterError(
                    f"picture {number} has {len(image.content)} bytes, at most {LARGEST} are kept; make it smaller"
                )
        rotation = self._rotation
        rows = [
            {
                "kind": of.value, "number": number, "media_type": image.media_type,
                "content": image.content if rotation is None else rotation.covered(image.content),
            }
            for number, image in pictures.items()
        ]  # fmt: skip

        def keep(connection: sql.Connection) -> None:
            delete_images(connection, of, list(pictures))
            connection.execute(sql.insert(IMAGES), rows)

        self._database.writing(keep)

    def get(self, of: Of, number: int) -> Image | None:
        """The picture of a sample or a review."""
        query = sql.select(IMAGES.c.media_type, IMAGES.c.content)
        query = query.where(IMAGES.c.kind == of.value, IMAGES.c.number == number)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        content = bytes(row.content)
        return Image(row.media_type, content if self._rotation is None else self._rotation.uncovered(content))

    def present(self, of: Of, numbers: Sequence[int]) -> set[int]:
        """Those of some numbers that have a picture."""
        found: set[int] = set()
        with self._database.reading() as connection:
            for some in parts(numbers):
                query = sql.select(IMAGES.c.number).where(IMAGES.c.kind == of.value, IMAGES.c.number.in_(some))
                found.update(connection.execute(query).scalars())
        return found


def delete_images(connection: sql.Connection, of: Of, numbers: Sequence[int]) -> None:
    """Pictures go; to be followed by a scrub where they must not be found again."""
    for some in parts(numbers):
        connection.execute(sql.delete(IMAGES).where(IMAGES.c.kind == of.value, IMAGES.c.number.in_(some)))
