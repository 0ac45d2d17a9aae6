"""Clusters: the shards of a gallery on a Ray cluster."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter
from starlette.requests import Request

from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.paths import GalleryName
from holue.service.http.problems import not_found
from holue.service.roles import Permission
from holue.service.schemas.clusters import ClusterDocument, ReplicaDocument
from holue.service.service import service_of

router = APIRouter(route_class=StrictRoute, tags=["galleries"])


@router.get("/v1/galleries/{gallery:segment}/cluster")
def cluster(
    request: Request, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.VIEW)]
) -> ClusterDocument:
    """The shards of a gallery, their replicas, how far each is behind, and the last failures; every replica is asked."""
    clustered = service_of(request).galleries.get(gallery).live.clustered
    if clustered is None:
        raise not_found("cluster", gallery, "start the service with --cluster")
    shards = clustered.cluster
    return ClusterDocument(
        shards=shards.n_shards,
        replicas=[ReplicaDocument(**asdict(row)) for row in shards.status()],
        failures=list(reversed(shards.failures.last)),
        error=shards.last_error or None,
    )
