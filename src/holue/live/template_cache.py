"""Template cache: the templates of one version, mapped from disk, so that a large gallery opens at once.

It can be made again from the samples at any time. A random word, kept in the database and in the cache, says that both belong
together: the cache of another database, or of an older copy of it, is not used. An erasure deletes the cache as a whole.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holue.artifact import read_artifact, write_artifact
from holue.errors import ArtifactError, CannotWriteError
from holue.gallery.gallery import Gallery
from holue.store.values import Problem

KIND = "templates"
NAME = "templates"
SMALLEST = 10_000
"""Subjects under which a gallery is built from its samples in a moment."""


@dataclass(frozen=True, eq=False)
class CachedTemplates:
    """A gallery as it was in a version."""

    version: int
    gallery: Gallery


class Words(Protocol):
    """Where the random word is kept: the store, or the local copy of a server's store."""

    def artifact(self, name: str) -> bytes | None:
        """Bytes kept under a name."""

    def put_artifact(self, name: str, data: bytes) -> None:
        """Keep bytes under a name."""


class TemplateCache:
    """The cache of one store, in a folder of its home; where there is no folder it holds nothing."""

    def __init__(self, words: Words, folder: Path | None) -> None:
        self._words, self._folder = words, folder

    def read(self, weighting: str) -> CachedTemplates | None:
        """What was kept, or None where it is not there, not whole or not of this store; directions are mapped, not compared."""
        word = self._words.artifact(NAME)
        if self._folder is None or word is None:
            return None
        try:
            content, arrays = read_artifact(self._folder, KIND, mapped="directions")
            if content["word"] != json.loads(word)["word"] or content["weighting"] != weighting:
                return None
            gallery = Gallery.of(
                arrays["subjects"], arrays["directions"], concentrations=arrays.get("concentrations"), numbers=arrays["numbers"]
            )  # fmt: skip
            return CachedTemplates(content["version"], gallery)
        except (ArtifactError, KeyError):
            return None

    def write(self, version: int, weighting: str, gallery: Gallery) -> None:
        """Keep a gallery; a disk that is full is no error, only a slower opening."""
        if self._folder is None or not self._folder.parents[1].is_dir():  # a local copy may have been replaced
            return
        word = secrets.token_hex(16)
        arrays = {"numbers": gallery.numbers, "subjects": gallery.subjects, "directions": gallery.directions}
        if gallery.concentrations is not None:
            arrays["concentrations"] = gallery.concentrations
        try:
            write_artifact(self._folder, KIND, {"version": version, "weighting": weighting, "word": word}, arrays)
        except (CannotWriteError, OSError):
            return
        self._words.put_artifact(NAME, json.dumps({"version": version, "word": word}).encode())

    def problems(self) -> list[Problem]:
        """Damage: the cache is read whole and compared with its checksums."""
        if self._folder is None or not self._folder.is_dir():
            return []
        try:
            read_artifact(self._folder, KIND)
            return []
        except ArtifactError as error:
            return [
                Problem(
                    f"{self._folder.parent.name}/{self._folder.name}", f"{error}; delete the folder, it is made again"
                )
            ]
