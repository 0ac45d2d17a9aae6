"""Opening: where a gallery lives is told by its path or URL, in this one place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from holue.errors import InvalidParameterError
from holue.live.kept_settings import has_settings, keep_settings
from holue.live.live_gallery import LiveGallery
from holue.store.memory import MemoryStore
from holue.store.protocol import Store
from holue.store.sqlite.home import DERIVED
from holue.store.sqlite.store import SqliteStore

MEMORY = ":memory:"


def open(
    path: str | os.PathLike[str],
    *,
    create: bool = False,
    dim: int | None = None,
    model: str | None = None,
    read_only: bool = False,
    **settings: Any,
) -> LiveGallery:
    """Open a living gallery: a directory, a ``postgresql://`` URL, or ``":memory:"``.

    With ``create=True`` a gallery that does not exist is made, for embeddings of ``dim`` numbers from ``model`` (the fingerprint
    of the embedding model); both hold for its whole life. The settings are those of
    :class:`holue.recognition.recognizer.OpenSetRecognizer` (``method``, ``target_fpir``, ``threshold``, ``search`` …): they are
    kept when a gallery is made, and given later they hold for this opening.

    >>> import holue, tempfile
    >>> home = tempfile.mkdtemp() + "/gallery"
    >>> with holue.open(home, create=True, dim=2, method="galue", threshold=0.8) as gallery:
    ...     enrolled = gallery.enroll([[1, 0], [0, 1]], ["ann", "bob"])
    >>> with holue.open(home, read_only=True) as gallery:
    ...     gallery.identify([[0.1, 0.9]]).subject
    array(['bob'], dtype=object)
    """
    name = os.fspath(path)
    made = _is_missing(name)
    if made and read_only:
        raise InvalidParameterError(
            f"{name} cannot be opened read-only: there is no gallery there yet; create it first"
        )
    if made and dim is None and (create or name == MEMORY):
        raise InvalidParameterError("dim is needed to create a gallery: the number of coordinates of an embedding")
    store: Store
    if name == MEMORY:
        store = MemoryStore(dim=dim or 0, model=model)
    elif _is_url(name):
        store, made = _on_server(name, create, dim, model)
    elif made and create:
        store = SqliteStore.create(name, dim=dim or 0, model=model)
    else:
        made = False
        store = SqliteStore.open(name, write=not read_only, dim=dim, model=model)
    try:
        if made or (
            create and not has_settings(store)
        ):  # an earlier creation may have been interrupted before they were kept
            keep_settings(store, settings)
        cache = store.path / DERIVED / "templates" if isinstance(store, SqliteStore) else None
        return LiveGallery(store, settings, cache=cache, read_only=read_only)
    except BaseException:
        store.close()
        raise


def restore(snapshot: str | os.PathLike[str], path: str | os.PathLike[str]) -> LiveGallery:
    """A new gallery from a snapshot, which stays as it is; names, scores and decisions are the same bit for bit."""
    name = os.fspath(path)
    if _is_url(name):
        from holue.store.postgres.store import PostgresStore

        PostgresStore.restore(os.fspath(snapshot), name).close()
    else:
        SqliteStore.restore(snapshot, path).close()
    return open(path)


def _on_server(url: str, create: bool, dim: int | None, model: str | None) -> tuple[Store, bool]:
    """The store of a PostgreSQL URL, and whether it was made here."""
    from holue.store.postgres.store import PostgresStore

    if not create or PostgresStore.exists(url):
        return PostgresStore.open(url, dim=dim, model=model), False
    if dim is None:
        raise InvalidParameterError("dim is needed to create a gallery: the number of coordinates of an embedding")
    return PostgresStore.create(url, dim=dim, model=model), True


def _is_url(name: str) -> bool:
    return name.startswith(("postgresql://", "postgres://"))


def _is_missing(name: str) -> bool:
    return name == MEMORY or not (_is_url(name) or (Path(name) / "gallery.db").exists())
