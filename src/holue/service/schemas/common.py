"""Common parts of schemas: subject ids, pages, changes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

SubjectId = Annotated[
    Annotated[StrictStr, Field(min_length=1, max_length=1000)] | Annotated[StrictInt, Field(ge=-(2**63) + 1, lt=2**63)],
    Field(description="A subject's id: text, or a whole number; one kind in a gallery.", examples=["ann"]),
]
Number = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
Embedding = Annotated[
    list[Annotated[float, Field(allow_inf_nan=False)]],
    Field(min_length=1, description="The numbers of an embedding.", examples=[[0.12, -0.98, 0.15, 0.04]]),
]
Concentration = Annotated[float, Field(gt=0, allow_inf_nan=False, examples=[120.0])]


Next = Annotated[
    str | None,
    Field(description="The cursor of the next page; null where this is the last one.", examples=["MTAw"]),
]


class Body(BaseModel):
    """What a request sends; a field that is not known is an error."""

    model_config = ConfigDict(extra="forbid")


class Document(BaseModel):
    """What an answer holds."""

    model_config = ConfigDict(ser_json_inf_nan="null")


class Changed(Document):
    """A change that is durable."""

    gallery: str = Field(description="The gallery.", examples=["office"])
    version: int = Field(description="The version that the change made.", examples=[7])
    operation: str = Field(
        description="The change's id, for POST /v1/operations/{operation}/undo.", examples=["office.7"]
    )


def operation_of(gallery: str, version: int) -> str:
    """The id of a change.

    >>> operation_of("office", 7)
    'office.7'
    """
    return f"{gallery}.{version}"


Metadata = Annotated[
    dict[str, Any], Field(description="Anything else about the subject.", examples=[{"badge": "A-113"}])
]
