"""Schemas of changes, erasures, snapshots and audits."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from holue.service.schemas.common import Body, Document, Next, Number, SubjectId


class EventDocument(Document):
    """One change of a gallery; subjects are named by number."""

    gallery: str = Field(description="The gallery.", examples=["office"])
    version: int = Field(description="The version that the change made.", examples=[7])
    operation: str = Field(description="Its id, for undoing it.", examples=["office.7"])
    kind: str = Field(description="What was done.", examples=["enroll"])
    time: float = Field(description="When, seconds since 1970.", examples=[1760000000.0])
    by: str | None = Field(description="The key that did it.", examples=["0a1b2c3d4e5f/enroller"])
    subjects: list[int] = Field(description="The numbers of the subjects it touched.", examples=[[3]])
    samples: int = Field(description="How many samples it touched.", examples=[2])
    undoes: int | None = Field(description="The version that it undid.", examples=[None])


class EventsPage(Document):
    """Changes of a gallery, oldest first."""

    events: list[EventDocument] = Field(description="The changes of this page.")
    next: str | None = Field(
        description="The cursor after this page; ask with it again for what came later.", examples=["Nw"]
    )


class ErasureBody(Body):
    """Subjects to erase for good."""

    gallery: str = Field(min_length=1, max_length=100, description="The gallery.", examples=["office"])
    subjects: list[SubjectId] = Field(
        default_factory=list, max_length=1000, description="Ids of enrolled or removed subjects.", examples=[["ann"]]
    )
    numbers: list[Number] = Field(default_factory=list, max_length=1000, description="Or their numbers.", examples=[[]])


class SearchedFile(Document):
    """A file that was searched for erased bytes."""

    file: str = Field(description="The file.", examples=["gallery.db"])
    size: int = Field(description="Its size in bytes.", examples=[1048576])
    found: int = Field(description="How many pieces of erased embeddings it holds.", examples=[0])


class ErasureDocument(Document):
    """Proof of an erasure: which files were searched. It holds salted digests of the ids, not the ids."""

    id: str = Field(description="The erasure's id.", examples=["office.1"])
    gallery: str = Field(description="The gallery.", examples=["office"])
    number: int = Field(description="The receipt's number in the gallery.", examples=[1])
    version: int = Field(description="The version that the erasure made.", examples=[9])
    time: float = Field(description="When, seconds since 1970.", examples=[1760000000.0])
    clean: bool = Field(description="Whether files were searched and none holds any of the bytes.", examples=[True])
    samples: int = Field(description="The embeddings that were erased.", examples=[3])
    compared: int = Field(description="Those that could be searched for.", examples=[3])
    salt: str = Field(description="The salt of the digests.", examples=["5f1c"])
    digests: list[str] = Field(description="Salted digests of the subjects' ids.", examples=[["9c56"]])
    files: list[SearchedFile] = Field(description="The files that were searched.")
    not_searched: list[str] = Field(description="What may hold the bytes and was out of reach.", examples=[[]])


class PurgeBody(Body):
    """Which expired subjects to erase: all of them."""

    dry_run: bool = Field(default=False, strict=True, description="Only list them.", examples=[False])


class PurgeDocument(Document):
    """The subjects whose time to be kept had come."""

    numbers: list[int] = Field(description="Their numbers.", examples=[[3]])
    erasure: ErasureDocument | None = Field(description="The receipt; null where nobody was erased.")


class SnapshotBody(Body):
    """A snapshot to take."""

    name: str | None = Field(
        default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$", description="Its name; the version by default.",
        examples=["monday"],
    )  # fmt: skip


class SnapshotDocument(Document):
    """A copy of the gallery, in its home."""

    name: str = Field(description="Its name.", examples=["monday"])


class SnapshotsDocument(Document):
    """The snapshots of a gallery."""

    snapshots: list[SnapshotDocument] = Field(description="The snapshots of this page, by name.")
    next: Next


class AuditBody(Body):
    """How to audit a gallery."""

    target_fpir: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="The FPIR that costs are told at; the gallery's by default.",
        examples=[None],
    )


class AuditDocument(Document):
    """What is wrong with a gallery; see the documentation of audits for each kind of finding."""

    gallery: str = Field(description="The gallery.", examples=["office"])
    gallery_version: int = Field(description="The version that was audited.", examples=[7])
    report: dict[str, Any] = Field(
        description="Mislabelled samples, duplicates, look-alikes, poor references and hubs, as `holue audit` gives them.",
        examples=[{"duplicates": []}],
    )
