"""Metrics: what the service does, in numbers that Prometheus collects."""

from __future__ import annotations

import time
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holue.cluster.status import ClusterHealth
from holue.service.http.logs import route_of

SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)


class Metrics:
    """One registry per service, so that several can run in one process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "holue_requests_total", "Requests by route and status.", ["method", "route", "status"], registry=registry
        )
        self.stages = Histogram(
            "holue_stage_seconds",
            "Seconds by stage: read, wait and all of a request; scan and write of requests that share them.",
            ["stage"],
            buckets=SECONDS,
            registry=registry,
        )
        self.waits, self.writes, self.reads, self.wholes = (
            self.stages.labels(stage) for stage in ("wait", "write", "read", "all")
        )
        self.batches = Histogram(
            "holue_batch_probes", "Probes that share a scan.", ["gallery"], buckets=SIZES, registry=registry
        )
        self.decisions = Counter(
            "holue_decisions_total", "Answers by decision.", ["gallery", "decision"], registry=registry
        )
        self.doubts = Gauge(
            "holue_doubts", "Reasons why a gallery's calibration may no longer fit.", ["gallery"], registry=registry
        )
        self.subjects = Gauge("holue_subjects", "Enrolled subjects.", ["gallery"], registry=registry)
        self.version = Gauge("holue_gallery_version", "The version that answers.", ["gallery"], registry=registry)
        self.waiting = Gauge("holue_waiting_probes", "Probes that wait for a scan.", ["gallery"], registry=registry)
        self.replicas = Gauge(
            "holue_replicas", "Replicas of shards on a cluster, by state.", ["gallery", "state"], registry=registry
        )
        self.shards_missing = Gauge(
            "holue_shards_missing", "Shards of which no replica answers.", ["gallery"], registry=registry
        )
        self.replica_lag = Gauge(
            "holue_replica_lag",
            "Versions that the slowest answering replica is behind.",
            ["gallery"],
            registry=registry,
        )
        self.replica_failures = Gauge(
            "holue_replica_failures", "Calls to replicas that failed since the start.", ["gallery"], registry=registry
        )
        self.refused = Counter(
            "holue_refused_total", "Identifications refused because too many wait.", ["gallery"], registry=registry
        )

    def observe_scan(self, gallery: str, seconds: float, probes: int) -> None:
        """One scan."""
        self.stages.labels("scan").observe(seconds)
        self.batches.labels(gallery).observe(probes)

    def observe_cluster(self, gallery: str, health: ClusterHealth) -> None:
        """The shards of a gallery as they are now."""
        self.replicas.labels(gallery, "answering").set(health.replicas - health.silent)
        self.replicas.labels(gallery, "silent").set(health.silent)
        self.shards_missing.labels(gallery).set(health.missing)
        self.replica_lag.labels(gallery).set(health.behind)
        self.replica_failures.labels(gallery).set(health.failures)

    def observe_decisions(self, gallery: str, decisions: Iterable[str]) -> None:
        """The decisions of one request."""
        for decision in decisions:
            self.decisions.labels(gallery, decision).inc()

    def text(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self.registry)


class RequestMetrics:
    """Counts and times every request."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def answering(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, answering)
        finally:
            self._metrics.wholes.observe(time.perf_counter() - started)
            self._metrics.requests.labels(scope["method"], route_of(scope), str(status)).inc()
