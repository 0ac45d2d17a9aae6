"""Checkpoint: everything a training needs to go on, as plain arrays and a line of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact.archive import read_archive, write_archive
from holue.embedding.training.pytorch import torch
from holue.errors import InvalidFileError

State = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """The state after an epoch: weights, the best weights so far, the optimiser's moments, the story so far."""

    weights: State
    best_weights: State
    optimizer: State
    story: dict[str, Any]

    def save(self, path: Path) -> None:
        """Write one ``.npz`` without pickles, whole or not at all."""
        arrays: dict[str, npt.NDArray[Any]] = {"story": np.asarray(json.dumps(self.story))}
        parts = (("weights", self.weights), ("best", self.best_weights), ("optimizer", self.optimizer))
        for part, state in parts:
            arrays |= {f"{part}/{name}": tensor.detach().numpy() for name, tensor in state.items()}
        write_archive(path, arrays)

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """What :meth:`save` wrote."""
        arrays = read_archive(path)
        parts: dict[str, State] = {"weights": {}, "best": {}, "optimizer": {}}
        try:
            story = json.loads(str(arrays.pop("story")))
            for key, array in arrays.items():
                part, name = key.split("/", 1)
                parts[part][name] = torch.from_numpy(array)
        except (KeyError, ValueError, TypeError) as error:
            raise InvalidFileError(f"{path}: not a checkpoint ({error}); remove it to start anew") from error
        return cls(parts["weights"], parts["best"], parts["optimizer"], story)


def copied(state: State) -> State:
    """Tensors that later training steps do not overwrite."""
    return {name: tensor.detach().clone() for name, tensor in state.items()}


def optimizer_state(optimizer: torch.optim.Optimizer) -> State:
    """The moments of every parameter, under ``parameter/name``."""
    moments = optimizer.state_dict()["state"]
    return {f"{index}/{name}": tensor for index, values in moments.items() for name, tensor in values.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, state: State) -> None:
    """Put back what :func:`optimizer_state` took."""
    moments: dict[int, State] = {}
    for key, tensor in state.items():
        index, name = key.split("/", 1)
        moments.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict(optimizer.state_dict() | {"state": moments})
