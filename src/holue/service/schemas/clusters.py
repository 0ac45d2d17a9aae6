"""Schemas of galleries on a cluster."""

from __future__ import annotations

from pydantic import Field

from holue.service.schemas.common import Document


class ReplicaDocument(Document):
    """One shard on one node."""

    shard: int = Field(description="The number of the shard.", examples=[0])
    node: str = Field(description="The id of the node in Ray.", examples=["4f1c"])
    address: str = Field(description="The address of the node, or `lost`.", examples=["10.0.0.7"])
    answers: bool = Field(description="Whether it answered now.", examples=[True])
    version: str | None = Field(
        description="The newest version it holds, with the time of its change.", examples=["17@1.5"]
    )
    behind: int | None = Field(description="How many versions it is behind.", examples=[0])
    subjects: int | None = Field(description="The subjects it holds.", examples=[500000])
    pid: int | None = Field(description="Its process.", examples=[4711])
    failures: int = Field(description="Calls that failed since the service was started.", examples=[0])
    last_failure: str = Field(description="When and how the last one failed.", examples=[""])


class ClusterDocument(Document):
    """The shards of a gallery."""

    shards: int = Field(description="How many parts the gallery has.", examples=[8])
    replicas: list[ReplicaDocument] = Field(description="Every shard on every node that holds it.")
    failures: list[str] = Field(description="The last failures of any replica, the newest first.", examples=[[]])
    error: str | None = Field(description="The last error while the nodes were looked after.", examples=[None])
