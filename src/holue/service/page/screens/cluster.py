"""Cluster: the shards of a gallery, their replicas, how far each is behind, and the last failures."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holue.service.http.paths import GalleryName
from holue.service.http.problems import not_found
from holue.service.page.rendering import render
from holue.service.page.visitor import PageRoute, Visiting
from holue.service.roles import Permission
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/galleries/{gallery:segment}/cluster")
def cluster(request: Request, visitor: Visiting, gallery: GalleryName) -> Response:
    """Every replica, asked now."""
    visitor.asker.require(Permission.VIEW, gallery)
    clustered = service_of(request).galleries.get(gallery).live.clustered
    if clustered is None:
        raise not_found("cluster", gallery, "start the service with --cluster")
    shards, rows = clustered.cluster, clustered.cluster.status()
    answering = {row.shard for row in rows if row.answers}
    missing = [shard for shard in range(shards.n_shards) if shard not in answering]
    silent = sum(not row.answers for row in rows)
    told = f"{shards.n_shards} shards, {len(rows)} replicas; all answer."
    if missing:
        told = (
            f"No replica answers for shards {', '.join(map(str, missing))}: decisions are incomplete until one is back."
        )
    elif silent:
        told = f"{silent} of {len(rows)} replicas do not answer; every shard has one that does."
    return render(
        request, "cluster.html.jinja", visitor, title="Cluster", gallery=gallery, told=told,
        kind="bad" if missing else "warn" if silent else "good", error=shards.last_error, rows=rows,
        failures=list(reversed(shards.failures.last)),
    )  # fmt: skip
