"""Galleries: the living galleries of a service, open by name."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from holue.errors import ConflictError, CorruptStoreError, InvalidParameterError
from holue.live.opening import open as open_gallery
from holue.service.galleries.opened import Opened
from holue.service.http.problems import ProblemError, not_found, shown
from holue.store.postgres.address import SCHEMES, Address
from holue.store.sqlite.home import DATABASE
from holue.store.sqlite.store import Damaged

logger = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
RESERVED = ("service",)
"""Names of folders that the service itself uses beside galleries."""

Open = Callable[[str, str, Any], Opened]
"""A function of a gallery's name, its place and the open gallery that gives its ``Opened``."""


class Galleries:
    """A gallery's home, a directory of galleries, or a gallery in PostgreSQL; new ones are made in a directory only."""

    def __init__(self, place: str, opened: Open, *, damaged: Damaged = "refuse", cluster: str | None = None) -> None:
        self.place, self._opened, self._damaged, self._cluster = place, opened, damaged, cluster
        self._root = None if place.startswith(SCHEMES) else Path(place)
        self._open: dict[str, Opened] = {}
        self._creating = threading.Lock()

    @property
    def is_directory(self) -> bool:
        """Whether several galleries can live here."""
        return self._root is not None and not (self._root / DATABASE).is_file()

    def open_all(self) -> None:
        """Open every gallery that is there."""
        if self._root is None:
            self._add(Address.parse(self.place).gallery, self.place)
        elif not self.is_directory:
            self._add(self._root.resolve().name, self.place)
        elif not self._root.is_dir():
            raise InvalidParameterError(
                f"{self.place}: no such directory; create a gallery with holue create, or make the directory first"
            )
        else:
            for home in sorted(self._root.iterdir()):
                if (home / DATABASE).is_file() and not home.name.startswith("."):
                    self._add(home.name, str(home))

    def create(self, name: str, *, dim: int, model: str | None, **settings: Any) -> Opened:
        """A new gallery; an error where the name is taken or there is no directory to make it in."""
        if not self.is_directory or self._root is None:
            raise ConflictError(
                "galleries cannot be created here, since the service runs on one gallery; start it on a directory"
            )
        if not NAME.fullmatch(name) or name in RESERVED:
            raise InvalidParameterError(
                f"name is up to 40 letters, digits, dots, dashes and underscores, got {shown(name)!r}; choose another one"
            )
        with self._creating:
            home = self._root / name
            if name in self._open or home.exists():
                raise ConflictError(f"there is a gallery {name!r} already; choose another name")
            open_gallery(home, create=True, dim=dim, model=model, **settings).close()
            return self._add(name, str(home))

    def get(self, name: str) -> Opened:
        """The gallery of a name."""
        found = self._open.get(name)
        if found is None:
            raise not_found("gallery", name, "the galleries are listed by GET /v1/galleries")
        return found

    def writable(self, name: str) -> Opened:
        """The gallery of a name, or a problem where it is only read."""
        found = self.get(name)
        if found.live.read_only:
            raise ProblemError(
                503, "read-only", f"gallery {name!r} is damaged and only read", field="gallery", rule="a whole gallery",
                way_out="restore a snapshot, then start the service again",
            )  # fmt: skip
        return found

    def __iter__(self) -> Iterator[Opened]:
        return iter([self._open[name] for name in sorted(self._open)])

    def close(self) -> None:
        """Close all of them."""
        with ExitStack() as stack:
            for opened in self:
                stack.callback(opened.close)
        self._open = {}

    def _add(self, name: str, place: str) -> Opened:
        try:
            live = open_gallery(place, cluster=self._cluster)
        except CorruptStoreError as error:
            if self._damaged == "refuse":
                raise
            logger.error("the gallery is damaged; answers are incomplete", exc_info=error, extra={"gallery": name})
            live = open_gallery(place, read_only=True, damaged="serve")
        try:
            opened = self._opened(name, place, live)
        except BaseException:
            live.close()
            raise
        self._open = {**self._open, name: opened}
        return opened
