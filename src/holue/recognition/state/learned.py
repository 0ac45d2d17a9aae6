"""Learned: attributes such as ``gallery_`` of an object whose state is one value, and absent until they are learned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Generic, Self, TypeVar, overload

from holue.recognition.state.state import State
from holue.recognition.state.state_cell import StateCell

T = TypeVar("T")


class Learner:
    """An object that keeps all it has learned in one :class:`StateCell`, made when it is first needed."""

    @property
    def _cell(self) -> StateCell:
        cell: StateCell | None = self.__dict__.get("_learned")
        return self.__dict__.setdefault("_learned", StateCell()) if cell is None else cell

    @property
    def _state(self) -> State:
        """All that was learned, as it is now."""
        return self._cell.state


class Learned(Generic[T]):
    """An attribute ``name_``: the field ``name`` of the state."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute, self.field = name, name.rstrip("_")

    @overload
    def __get__(self, learner: None, owner: type) -> Self: ...
    @overload
    def __get__(self, learner: Learner, owner: type) -> T: ...
    def __get__(self, learner: Learner | None, owner: type) -> Self | T:
        if learner is None:
            return self
        cell = learner._cell
        value: T | None = getattr(cell.state, self.field) if cell.is_fitted else None
        if value is None:
            raise AttributeError(
                f"{self.attribute} is not there yet: it comes with fit, calibrate or a risk controller"
            )
        return value

    def __set__(self, learner: Learner, value: T) -> None:
        field: dict[str, Any] = {self.field: value}
        learner._cell.change(lambda now: replace(now, **field))

    def __delete__(self, learner: Learner) -> None:
        self.__set__(learner, None)  # type: ignore[arg-type]
