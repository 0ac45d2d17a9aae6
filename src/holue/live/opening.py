"""Opening: a path or URL says where a gallery is stored; only this file reads it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from holue.cluster.cluster import Cluster
from holue.cluster.engine import connect
from holue.errors import InvalidParameterError
from holue.live.clustered import ClusterAddress, Clustered, Joining, identity_of
from holue.live.kept_settings import check_settings, has_settings, keep_settings
from holue.live.live_gallery import LiveGallery
from holue.live.protection import VARIABLE, is_protected, key_in
from holue.live.protection import protect as protect_gallery
from holue.live.template_cache import TemplateCache
from holue.store.memory import MemoryStore
from holue.store.protocol import Store
from holue.store.sqlite.home import DERIVED
from holue.store.sqlite.store import Damaged, SqliteStore

MEMORY = ":memory:"


def open(
    path: str | os.PathLike[str],
    *,
    create: bool = False,
    dim: int | None = None,
    model: str | None = None,
    read_only: bool = False,
    damaged: Damaged = "refuse",
    protect: bool = False,
    cluster: str | ClusterAddress | None = None,
    **settings: Any,
) -> LiveGallery:
    """Open a gallery: a directory, a ``postgresql://`` URL, or ``":memory:"``.

    With ``create=True`` a gallery that does not exist is made, for embeddings of ``dim`` numbers from ``model`` (the fingerprint
    of the embedding model); both hold for its whole life. The settings are those of
    :class:`holue.recognition.recognizer.OpenSetRecognizer` (``method``, ``target_fpir``, ``threshold``, ``search`` …): they are
    kept when a gallery is made, and given later they hold for this opening.

    A damaged directory is refused. With ``damaged="serve"`` and ``read_only=True`` every byte is read, and what is damaged is
    left out. Then every decision is "incomplete", since the probe may show a subject that is missing; ``status().missing`` names
    those.

    A gallery made with ``protect=True`` stores its samples turned by a secret rotation, whose key is in the environment
    (``HOLUE_TEMPLATE_KEY``) whenever it is opened; see :mod:`holue.live.protection`.

    With ``cluster`` (``"local"``, or the address of a Ray cluster such as ``"ray://host:10001"``) its rows are searched by shards
    there; see :mod:`holue.cluster`.

    >>> import holue, tempfile
    >>> home = tempfile.mkdtemp() + "/gallery"
    >>> with holue.open(home, create=True, dim=2, method="galue", threshold=0.8) as gallery:
    ...     enrolled = gallery.enroll([[1, 0], [0, 1]], ["ann", "bob"])
    >>> with holue.open(home, read_only=True) as gallery:
    ...     gallery.identify([[0.1, 0.9]]).subject
    array(['bob'], dtype=object)
    """
    name = os.fspath(path)
    _check_damaged(name, damaged, read_only)
    made = _is_missing(name)
    if made and read_only:
        raise InvalidParameterError(
            f"{name} cannot be opened read-only: there is no gallery there yet; create it first"
        )
    if made and dim is None and (create or name == MEMORY):
        raise InvalidParameterError("dim is needed to create a gallery: the number of coordinates of an embedding")
    if made:
        check_settings(settings, model)
    store: Store
    if name == MEMORY:
        store = MemoryStore(dim=dim or 0, model=model)
    elif _is_url(name):
        store, made = _on_server(name, create, dim, model)
    elif made and create:
        store = created_store(name, dim=dim or 0, model=model)
    else:
        made = False
        store = SqliteStore.open(name, write=not read_only, damaged=damaged, dim=dim, model=model)
    try:
        if made or (
            create and not has_settings(store)
        ):  # an earlier creation may have been interrupted before they were kept
            if protect:
                protect_gallery(store, key_in(VARIABLE))
            keep_settings(store, settings)
        if protect and not is_protected(store):
            raise InvalidParameterError(f"{name} was made without protect=True; make a new gallery, and enrol into it")
        joining = None if cluster is None else _joining(store, name, ClusterAddress.of(cluster))
        return LiveGallery(store, settings, cache=_cache(store), read_only=read_only, cluster=joining)
    except BaseException:
        store.close()
        raise


def restore(snapshot: str | os.PathLike[str], path: str | os.PathLike[str]) -> LiveGallery:
    """A new gallery from a snapshot or another gallery, which stays; names, scores and decisions are the same bit for bit.

    Each of the two is a directory or a ``postgresql://`` URL, so a gallery moves from one home to the other.
    """
    source, name = os.fspath(snapshot), os.fspath(path)
    if _is_url(source) or _is_url(name):
        from holue.store.postgres.upkeep import moving

        moving.restore(source, name)
    else:
        SqliteStore.restore(source, name).close()
    return open(path)


def created_store(name: str, *, dim: int, model: str | None) -> Store:
    """A new store at a path or URL; an error where there is one already."""
    if _is_url(name):
        from holue.store.postgres.store import PostgresStore

        return PostgresStore.create(name, dim=dim, model=model)
    return SqliteStore.create(name, dim=dim, model=model)


def _on_server(url: str, create: bool, dim: int | None, model: str | None) -> tuple[Store, bool]:
    """The store of a PostgreSQL URL, and whether it was made here."""
    from holue.store.postgres.store import PostgresStore

    if not create or PostgresStore.exists(url):
        return PostgresStore.open(url, dim=dim, model=model), False
    if dim is None:
        raise InvalidParameterError("dim is needed to create a gallery: the number of coordinates of an embedding")
    return created_store(url, dim=dim, model=model), True


def shards_of(path: str | os.PathLike[str], where: ClusterAddress) -> Cluster:
    """The shards of a gallery on a Ray cluster, to look at or to end; the gallery itself is not opened for answers."""
    name = os.fspath(path)
    store = _on_server(name, False, None, None)[0] if _is_url(name) else SqliteStore.open(name, write=False)
    try:
        identity, version = identity_of(store, name), store.version
    finally:
        store.close()
    connect(where.address)
    found = Cluster(identity, n_shards=where.n_shards, replicas=where.replicas)
    found.newest = version
    return found


def _joining(store: Store, name: str, where: ClusterAddress) -> Joining:
    if store.damage:
        raise InvalidParameterError(
            f"{name} is damaged: its rows are not spread over a cluster; open it without cluster="
        )
    return lambda kind: Clustered(store, name, kind, where)


def _check_damaged(name: str, damaged: str, read_only: bool) -> None:
    if damaged not in ("refuse", "serve"):
        raise InvalidParameterError(f"damaged must be 'refuse' or 'serve', got {damaged!r}")
    if damaged == "serve" and (_is_url(name) or not read_only):
        raise InvalidParameterError(
            f"{name} cannot be opened with damaged='serve': that is for a directory, and with read_only=True"
        )


def _cache(store: Store) -> TemplateCache:
    """Where templates are kept: in the home, or in the local copy of a gallery on a server, if that is kept."""
    if isinstance(store, SqliteStore):
        return TemplateCache(store, store.path / DERIVED / "templates")
    derived = getattr(store, "derived", None)
    return TemplateCache(store, None) if derived is None else TemplateCache(derived, derived.path / "templates")


def _is_url(name: str) -> bool:
    return name.startswith(("postgresql://", "postgres://"))


def _is_missing(name: str) -> bool:
    return name == MEMORY or not (_is_url(name) or (Path(name) / "gallery.db").exists())
