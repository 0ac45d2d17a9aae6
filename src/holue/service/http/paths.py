"""Paths: segments that may hold any character, the slash included, because they are decoded after the route is found."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import Path
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send


class EncodedPath:
    """Has routes compared with the path as it was sent: ``/subjects/a%2Fb`` names the subject ``a/b``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and scope.get("raw_path") is not None:
            scope["path"] = scope["raw_path"].decode("latin-1")
        await self._app(scope, receive, send)


class _Segment(Convertor[str]):
    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """The text of a segment; bytes that are no UTF-8 become surrogates, which no name has."""
        return unquote(value, errors="surrogateescape")

    def to_string(self, value: str) -> str:
        """The segment of a text."""
        return quote(value, safe="")


register_url_convertor("segment", _Segment())

GalleryName = Annotated[str, Path(description="The name of a gallery.", examples=["demo"])]
SubjectText = Annotated[str, Path(description="A subject's id, percent-encoded.", examples=["ann"])]
