"""Clustered: the versions of an open gallery, each searched by the shards of a Ray cluster."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from holue.cluster.cluster import Cluster
from holue.cluster.cluster_search import ClusterSearch
from holue.cluster.engine import connect, disconnect, ray
from holue.cluster.feeding import Difference, VersionToServe
from holue.cluster.local_ray import LOCAL, LocalRay
from holue.cluster.node_join import NodeJoin
from holue.cluster.shards.shard import version_number
from holue.errors import InvalidParameterError, StoreError
from holue.evidence.leave_one_out import joined_by
from holue.gallery.gallery import Gallery
from holue.live.follower import concerned_by
from holue.recognition.search.search import Search, SearchKind
from holue.recognition.search.search_report import SearchReport
from holue.recognition.state.state import State
from holue.recognition.state.state_cell import StateCell
from holue.store.protocol import Store
from holue.store.values import Receipt

ARTIFACT = "cluster"


@dataclass(frozen=True)
class ClusterAddress:
    """Where a Ray cluster is (``local``: one of its own on this machine), and how many shards to start where there are none."""

    address: str
    n_shards: int | None = None
    replicas: int = 2

    @classmethod
    def of(cls, given: str | ClusterAddress) -> ClusterAddress:
        """An address alone, or with more."""
        return cls(given) if isinstance(given, str) else given


class Clustered:
    """A gallery's shards, fed with every version that this process sees."""

    def __init__(self, store: Store, path: str, kind: SearchKind, where: ClusterAddress) -> None:
        self._store, self._joined = store, False
        self._local = LocalRay() if where.address == LOCAL and not ray().is_initialized() else None
        if where.address != LOCAL:
            self._joined = not ray().is_initialized()
            connect(where.address)
        identity = identity_of(store, path, shared=self._local is None)
        self.cluster = Cluster(identity, kind=kind, n_shards=where.n_shards, replicas=where.replicas)
        self.cluster.supervise()
        self._started = False
        self.join = NodeJoin()

    def cell(self, version: int, gallery: Gallery | None, shared: StateCell) -> StateCell:
        """What searches a version; the shards are brought to it at once."""
        if gallery is None:
            return shared
        served = VersionToServe(self._name(version), gallery, self._between)
        if self._started:
            self.cluster.serve(served)
        else:
            self.cluster.start(served)
            self._started = True
        return ClusterCell(self.cluster, served, shared)

    @contextmanager
    def joining(self) -> Iterator[None]:
        """Have an audit or a leave-one-out calibration compare subjects on the nodes."""
        with joined_by(self.join):
            yield

    def erased(self, receipt: Receipt) -> Receipt:
        """A receipt that names the nodes whose files could not be rewritten without who was erased."""
        left = self.cluster.unreached()
        said = tuple(
            f"shard {shard} on node {address}, which cannot be reached; its rows are deleted when a shard of this gallery next "
            "starts on that machine"
            for shard, address in left
        )
        return replace(receipt, not_searched=(*receipt.not_searched, *said)) if said else receipt

    def close(self) -> None:
        """Leave the cluster; its shards stay, unless it was started here."""
        if self._local is not None:
            with contextlib.suppress(Exception):  # whatever Ray raises: it ends anyway
                self.cluster.down()
            self._local.close()
            return
        self.cluster.close()
        if self._joined:
            disconnect()

    def _name(self, version: int) -> str:
        """A version with the time of its change: after a restored backup the same number is another version."""
        try:
            first = next(iter(self._store.changes(version - 1)), None) if version else None
        except InvalidParameterError:  # no longer kept
            first = None
        return f"{version}@{0.0 if first is None or first.version != version else first.time!r}"

    def _between(self, base: str, wanted: str) -> Difference | None:
        """Whom the changes between two versions concern, in either direction."""
        old, new = sorted((version_number(base), version_number(wanted)))
        if self._name(version_number(base)) != base:
            return None
        try:
            changes = [change for change in self._store.changes(old) if change.version <= new]
            if len(changes) != new - old:
                return None
            erased = any(change.kind == "erase" for change in changes)
            # An erasure takes what it concerns out of the changes before it; and nobody who is erased may come back.
            if erased and (len(changes) > 1 or version_number(wanted) == old):
                return None
            numbers = concerned_by(self._store, old, changes)
        except InvalidParameterError:  # the versions since are no longer kept
            return None
        return Difference(np.array(sorted(numbers), np.int64), erased)


Joining = Callable[[SearchKind], Clustered]
"""Joins a cluster, once it is known how a gallery is read."""


class ClusterCell(StateCell):
    """A cell whose search is the cluster's, of one version."""

    def __init__(self, cluster: Cluster, served: VersionToServe, shared: StateCell) -> None:
        super().__init__()
        self._cluster, self._served, self._shared = cluster, served, shared
        self._reports: dict[tuple[SearchKind, SearchKind, float | None], SearchReport] = {}

    def search(self, kind: SearchKind, gallery: Gallery, threshold: float | None = None) -> Search:
        """A search that has seen nothing yet."""
        return ClusterSearch(self._cluster, self._served, self._cluster.chosen(kind, gallery).kind)

    def search_report(self, kind: SearchKind, state: State) -> SearchReport:
        """How the shards read this version; asked once for each threshold."""
        point = state.operating_point
        threshold = None if point is None else point.threshold
        way = self._cluster.chosen(kind, state.gallery).kind
        key = kind, way, threshold
        if key not in self._reports:
            search = ClusterSearch(self._cluster, self._served, way)
            self._reports = {**self._reports, key: search.report(kind, threshold)}
        return self._reports[key]

    def warned(self, state: State) -> set[str]:
        """What users were warned of, in any version."""
        return self._shared.warned(state)


def identity_of(store: Store, path: str, *, shared: bool = True) -> str:
    """What names a gallery's shards: random, kept in the store, and of this place, since a copy is another gallery."""
    if not shared:
        return secrets.token_hex(8)
    kept = store.artifact(ARTIFACT)
    if kept is None:
        kept = json.dumps({"identity": secrets.token_hex(16)}).encode()
        try:
            store.put_artifact(ARTIFACT, kept)
        except StoreError as error:
            raise InvalidParameterError(
                f"{path} was never on a cluster, and cannot be put on one by a reader; run: holue cluster up {path}"
            ) from error
    place = path if "://" in path else os.path.realpath(path)
    return hashlib.sha256(kept + place.encode()).hexdigest()[:16]
