"""Schemas of keys and the audit log."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from holue.service.schemas.common import Body, Document, Next

RoleName = Literal["viewer", "operator", "enroller", "reviewer", "auditor", "admin"]


class NewKeyBody(Body):
    """A key to make."""

    role: RoleName = Field(description="What its holder may do.", examples=["operator"])
    gallery: str | None = Field(
        default=None,
        max_length=100,
        description="The only gallery it is for; every one by default.",
        examples=["office"],
    )
    holder: str | None = Field(
        default=None, min_length=1, max_length=200, description="The person or program that gets it.",
        examples=["door camera"],
    )  # fmt: skip
    expires: float | None = Field(
        default=None, allow_inf_nan=False, description="When it expires, seconds since 1970; never by default.",
        examples=[None],
    )  # fmt: skip


class RotateBody(Body):
    """How to replace a key."""

    overlap: float = Field(
        default=0.0, ge=0, le=2_592_000, description="Seconds for which the old key stays valid.", examples=[3600.0]
    )


class KeyDocument(Document):
    """A key without its secret."""

    prefix: str = Field(description="The beginning of the key, which names it.", examples=["0a1b2c3d4e5f"])
    role: RoleName = Field(description="What its holder may do.", examples=["operator"])
    gallery: str | None = Field(description="The only gallery it is for.", examples=["office"])
    holder: str | None = Field(description="The person or program that has it.", examples=["door camera"])
    created: float = Field(description="When it was made, seconds since 1970.", examples=[1760000000.0])
    created_by: str | None = Field(description="The key that made it.", examples=["1e707fe37d65/admin"])
    expires: float | None = Field(description="When it expires.", examples=[None])
    revoked: float | None = Field(description="When it was revoked.", examples=[None])
    replaces: str | None = Field(description="The key that it replaces.", examples=[None])


class NewKeyDocument(KeyDocument):
    """A key that was just made."""

    key: str = Field(description="The key itself; it is shown once.", examples=["hk_0a1b2c3d4e5f_…"])


class KeysDocument(Document):
    """Every key that was ever made."""

    keys: list[KeyDocument] = Field(description="The keys of this page, oldest first.")
    next: Next


class LogEntry(Document):
    """One row of the audit log; it holds no embedding and no name."""

    sequence: int = Field(description="Its place in the log.", examples=[1])
    started: float = Field(description="When the request began, seconds since 1970.", examples=[1760000000.0])
    ended: float = Field(description="When it ended.", examples=[1760000000.2])
    actor: str = Field(description="The key and its role.", examples=["0a1b2c3d4e5f/operator"])
    action: str = Field(description="What was done.", examples=["identify"])
    gallery: str | None = Field(description="The gallery.", examples=["office"])
    gallery_version: int | None = Field(description="The version that answered, or was made.", examples=[7])
    calibration: int | None = Field(description="The calibration that answered.", examples=[2])
    model: str | None = Field(description="The embedding model.", examples=[None])
    decision: str | None = Field(description="What was decided.", examples=["accepted"])
    input_digest: str | None = Field(description="The salted digest of the probe.", examples=["9c56"])
    answer_digest: str | None = Field(description="The salted digest of the answer.", examples=["1f02"])
    request_id: str = Field(description="The request.", examples=["0198c2d4a7b1"])
    probe: int | None = Field(description="The probe's place in the request.", examples=[0])
    item: int | None = Field(description="The review, erasure or calibration concerned.", examples=[None])
    previous: str = Field(description="The hash of the row before.", examples=["0000"])
    hash: str = Field(description="The hash of this row.", examples=["7ac3"])
    salt: str = Field(description="The salt of its digests.", examples=["5f1c"])


class LogPage(Document):
    """Rows of the audit log, oldest first."""

    entries: list[LogEntry] = Field(description="The rows of this page.")
    next: str | None = Field(description="The cursor of the next page.", examples=["MTAw"])
    head: str = Field(description="The newest row and its hash: note it elsewhere.", examples=["41:7ac3"])


class Verified(Document):
    """Whether the log is as it was written."""

    intact: bool = Field(description="Whether nothing was changed, dropped or reordered.", examples=[True])
    problems: list[str] = Field(description="What was found, row by row.", examples=[[]])
    head: str = Field(description="The newest row and its hash: note it elsewhere.", examples=["41:7ac3"])
