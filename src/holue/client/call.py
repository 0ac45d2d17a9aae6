"""Call: one request to the service, and how its answer is read; sending it is another matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Call(Generic[T]):
    """A request: ``json`` or ``content`` is its body; ``read`` makes the result from the answer's document."""

    method: str
    path: str
    read: Callable[[Any], T]
    json: Any = None
    content: bytes | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def after(self, cursor: str) -> Call[T]:
        """The same about the next page."""
        return replace(self, params={**self.params, "cursor": cursor})

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does no harm: it changes nothing, or carries a key that names it."""
        return self.method == "GET" or "Idempotency-Key" in self.headers
