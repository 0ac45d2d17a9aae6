"""Closing: a context manager that closes itself at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """What has ``close``, which may be called twice."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
