"""Settings: what an evaluation was asked to do, checked before anything is read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from holue.errors import InvalidParameterError
from holue.evaluation.metrics.rejection import PrrRange, check_grid, check_prr
from holue.recognition.checks import check_positive, check_share, is_number
from holue.recognition.model.operating_point import Hold

ThresholdFrom = Literal["dev", "eval"]

THRESHOLD_LABELS: dict[str, str] = {
    "dev": "threshold from the development part",
    "eval": "ORACLE threshold from the evaluation labels, the paper's protocol",
}
"""How every output says where the threshold comes from."""


@dataclass(frozen=True)
class Settings:
    """The resolved configuration of an evaluation; see :func:`holue.evaluation.comparison.study.evaluate`.

    >>> Settings(fpir=(0.1,)).label
    'threshold from the development part'
    """

    fpir: tuple[float, ...] = (0.05, 0.1, 0.2)
    threshold_from: ThresholdFrom = "dev"
    n_resamples: int = 1000
    level: float = 0.95
    seed: int = 0
    max_rejection: float = 0.5
    points: int | None = None
    temperature: float = 20.0
    unknown_prior: float = 0.5
    prr: PrrRange = "counted"
    fpir_confidence: float | None = None
    hold: Hold = "fpir"

    def __post_init__(self) -> None:
        for value in self.fpir:
            check_share("fpir", value)
        if not self.fpir:
            raise InvalidParameterError("fpir must hold at least one target, such as 0.05")
        if len(set(self.fpir)) < len(self.fpir):
            raise InvalidParameterError(
                f"fpir must hold each target once, got {', '.join(f'{f:g}' for f in self.fpir)}"
            )
        if self.threshold_from not in THRESHOLD_LABELS:
            raise InvalidParameterError(
                f"threshold_from must be 'dev' (fair) or 'eval' (the paper's oracle), got {self.threshold_from!r}"
            )
        _check_whole("n_resamples", self.n_resamples, 1)
        _check_whole("seed", self.seed, 0)
        check_share("level", self.level)
        check_grid(self.max_rejection, self.points)
        check_prr(self.prr)
        check_positive("temperature", self.temperature)
        check_share("unknown_prior", self.unknown_prior)
        if self.fpir_confidence is not None:
            check_share("fpir_confidence", self.fpir_confidence)
        if self.hold not in get_args(Hold):
            raise InvalidParameterError(f"hold must be one of {', '.join(get_args(Hold))}, got {self.hold!r}")

    @property
    def label(self) -> str:
        """Where the threshold comes from."""
        return THRESHOLD_LABELS[self.threshold_from]

    @property
    def is_oracle(self) -> bool:
        """Whether the threshold was chosen with the labels the numbers are reported on."""
        return self.threshold_from == "eval"

    def document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "fpir": list(self.fpir)}


def as_targets(fpir: object) -> tuple[float, ...]:
    """One target or several, as a tuple of numbers.

    >>> as_targets(0.05), as_targets([0.1, 0.2])
    ((0.05,), (0.1, 0.2))
    """
    values: list[Any] = list(fpir) if isinstance(fpir, list | tuple | np.ndarray) else [fpir]
    if not all(is_number(value) for value in values):
        raise InvalidParameterError(f"fpir must hold numbers between 0 and 1, got {fpir!r}")
    return tuple(float(value) for value in values)


def _check_whole(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or value != int(value) or value < least:
        raise InvalidParameterError(f"{name} must be a whole number of at least {least}, got {value!r}")
