"""The training loop: AdamW under a one-cycle learning rate, stopped early by subjects it never saw."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from holue.embedding.training.checkpoint import Checkpoint, State, copied, optimizer_state, restore_optimizer
from holue.embedding.training.pytorch import reproducible, torch
from holue.errors import InvalidParameterError, InvalidSubjectsError, TrainingDivergedError
from holue.gallery.subjects import Subjects
from holue.progress import Progress

Tensor = torch.Tensor
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TrainingSettings:
    """How long, how fast, and what is held out. ``held_out=0`` trains every epoch on every subject."""

    epochs: int = 20
    batch_size: int = 128
    peak_learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    gradient_clip: float = 5.0
    held_out: float = 0.1
    patience: int = 8
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience", "threads"):
            if getattr(self, name) < 1:
                raise InvalidParameterError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("peak_learning_rate", "gradient_clip"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidParameterError(f"{name} must be positive and finite, got {getattr(self, name)}")
        if not 0 <= self.weight_decay < math.inf:
            raise InvalidParameterError(f"weight_decay must not be negative, got {self.weight_decay}")
        if not 0 <= self.held_out < 1:
            raise InvalidParameterError(f"held_out is a share of the subjects in [0, 1), got {self.held_out}")


class Task(Protocol):
    """What is trained: a module, its batches and its loss."""

    @property
    def module(self) -> torch.nn.Module:
        """Everything with weights that learn, also what is not exported."""

    @property
    def identity(self) -> str:
        """A hash of the data and of the task's own settings: what a checkpoint belongs to."""

    @property
    def steps(self) -> int:
        """Batches in an epoch."""

    def batches(self, rng: np.random.Generator) -> Iterable[tuple[Tensor, ...]]:
        """One epoch of training batches."""

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        """The mean loss of a batch."""

    def held_out_loss(self) -> float | None:
        """The loss on held-out subjects, or None where none are held out."""


@dataclass
class TrainingHistory:
    """The losses epoch by epoch, the epoch that was kept, and whether training was stopped early."""

    training_loss: list[float] = field(default_factory=list)
    held_out_loss: list[float] = field(default_factory=list)
    best_epoch: int = -1
    finished: bool = False


def train(
    task: Task,
    settings: TrainingSettings,
    *,
    checkpoint_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> TrainingHistory:
    """Train ``task.module`` in place and leave it with the weights of its best epoch.

    With ``checkpoint_dir`` every epoch is kept, under a name made of the data and the settings; the same call
    then continues an interrupted training, to the same result, and a finished one is only read.
    """
    module = task.module
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=settings.peak_learning_rate, weight_decay=settings.weight_decay
    )
    path = None if checkpoint_dir is None else Path(checkpoint_dir) / f"{_identity(task, settings)}.npz"
    history, best = TrainingHistory(), copied(module.state_dict())
    if path is not None and path.is_file():
        saved = Checkpoint.load(path)
        module.load_state_dict(saved.weights)
        restore_optimizer(optimizer, saved.optimizer)
        history, best = TrainingHistory(**saved.story), saved.best_weights
        logger.info("resumed after epoch %d from %s", len(history.training_loss), path)
    while not history.finished:
        epoch = len(history.training_loss)
        # Seeded by the epoch, not by what came before it: a resumed run draws what an unbroken one would.
        with reproducible(_epoch_seed(settings.seed, epoch), settings.threads):
            _train_epoch(task, settings, optimizer, epoch, history, path)
            module.eval()
            with torch.no_grad():
                held_out = task.held_out_loss()
        if held_out is not None and not math.isfinite(held_out):
            rate = float(optimizer.param_groups[0]["lr"])
            raise TrainingDivergedError(_diverged(held_out, (epoch + 1) * task.steps - 1, rate, epoch, path))
        best = _judge(history, held_out, settings, module, best)
        if path is not None:
            Checkpoint(module.state_dict(), best, optimizer_state(optimizer), asdict(history)).save(path)
        note = f"loss {history.training_loss[-1]:.4g}" + ("" if held_out is None else f", held out {held_out:.4g}")
        logger.info("epoch %d of %d: %s", epoch + 1, settings.epochs, note)
        if progress is not None:
            progress(epoch + 1, settings.epochs, note)
    module.load_state_dict(best)
    module.eval()
    return history


def one_cycle_rate(step: int, steps: int, peak: float) -> float:
    """The learning rate of a step: up from peak/25 over 30 % of the steps, then down to peak/250 000, by cosines.

    A function of the step alone, so that it needs no place in a checkpoint.

    >>> [round(one_cycle_rate(step, 10, 1.0), 3) for step in (0, 2, 9)]
    [0.04, 1.0, 0.0]
    """
    warm_up = max(0.3 * steps - 1, 1e-9)
    if step <= warm_up:
        return _cosine_path(peak / 25, peak, step / warm_up)
    return _cosine_path(peak, peak / 250_000, (step - warm_up) / max(steps - 1 - warm_up, 1e-9))


def held_out_rows(subjects: Subjects, settings: TrainingSettings, *, left_out: int = 0) -> npt.NDArray[np.bool_]:
    """Which samples are of held-out subjects: a seeded share of the subjects, all of their samples.

    ``left_out`` subjects with one sample are not among them any more; an error says so.
    """
    keys = np.unique(subjects)
    count = round(settings.held_out * len(keys))
    if settings.held_out and not 2 <= count <= len(keys) - 2:
        alone = f" ({left_out} more have one sample and are left out)" if left_out else ""
        raise InvalidSubjectsError(
            f"held_out={settings.held_out} of {len(keys)} subjects{alone} holds out {count}, at least 2 must be held out and "
            "2 be left; give more subjects, another share, or held_out=0 to train without early stopping"
        )
    chosen = np.random.default_rng([settings.seed, 0]).choice(keys, count, replace=False)
    return np.isin(subjects, chosen)


class ContentHash:
    """A hash of arrays, whole or block by block, and of anything that JSON can write.

    >>> some, blocks = ContentHash(), ContentHash()
    >>> some.add(np.eye(4))
    >>> blocks.add_blocks("<f8", (4, 4), [np.eye(4)[:3], np.eye(4)[3:]])
    >>> some.hexdigest() == blocks.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._total = hashlib.sha256()

    def add(self, *parts: object) -> None:
        """Go on with these."""
        for part in parts:
            if isinstance(part, np.ndarray):
                self.add_blocks(part.dtype.str, part.shape, [part])
            else:
                self._total.update(json.dumps(part, sort_keys=True).encode())

    def add_blocks(self, dtype: str, shape: tuple[int, ...], blocks: Iterable[npt.NDArray[Any]]) -> None:
        """Go on with an array of this type and shape, of which ``blocks`` are the rows in their order."""
        self._total.update(f"{dtype}{shape}".encode())
        for block in blocks:
            self._total.update(np.ascontiguousarray(block).tobytes())

    def hexdigest(self) -> str:
        """The hash of all so far."""
        return self._total.hexdigest()


def content_hash(*parts: object) -> str:
    """A hash of arrays and of anything that JSON can write."""
    total = ContentHash()
    total.add(*parts)
    return total.hexdigest()


def _train_epoch(
    task: Task,
    settings: TrainingSettings,
    optimizer: torch.optim.Optimizer,
    epoch: int,
    history: TrainingHistory,
    path: Path | None,
) -> None:
    task.module.train()
    total, count = 0.0, 0
    for index, batch in enumerate(task.batches(np.random.default_rng([settings.seed, 1, epoch]))):
        step = epoch * task.steps + index
        rate = one_cycle_rate(step, settings.epochs * task.steps, settings.peak_learning_rate)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = task.loss(batch)
        if not torch.isfinite(loss):
            raise TrainingDivergedError(_diverged(float(loss.detach()), step, rate, epoch, path))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(task.module.parameters(), settings.gradient_clip)
        optimizer.step()
        total, count = total + float(loss.detach()), count + 1
    history.training_loss.append(total / count)


def _judge(
    history: TrainingHistory,
    held_out: float | None,
    settings: TrainingSettings,
    module: torch.nn.Module,
    best: State,
) -> State:
    epoch = len(history.training_loss) - 1
    last = epoch + 1 == settings.epochs
    if held_out is None:
        history.best_epoch, history.finished = epoch, last
        return copied(module.state_dict())
    history.held_out_loss.append(held_out)
    improved = history.best_epoch < 0 or held_out < history.held_out_loss[history.best_epoch]
    if improved:
        history.best_epoch, best = epoch, copied(module.state_dict())
    history.finished = last or epoch - history.best_epoch >= settings.patience
    return best


def _diverged(loss: float, step: int, rate: float, epoch: int, path: Path | None) -> str:
    kept = "no checkpoint was asked for"
    if path is not None:
        kept = f"the last good checkpoint is {path}" if path.is_file() else "there is no checkpoint before it"
    return (
        f"the loss became {loss} at step {step} (epoch {epoch + 1}) with learning rate {rate:.3g}; {kept}; "
        "lower peak_learning_rate, or look for samples that are not finite"
    )


def _epoch_seed(seed: int, epoch: int) -> int:
    return int(np.random.SeedSequence([seed, 2, epoch]).generate_state(1)[0])


def _cosine_path(start: float, end: float, share: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def _identity(task: Task, settings: TrainingSettings) -> str:
    shapes: dict[str, Any] = {name: list(tensor.shape) for name, tensor in task.module.state_dict().items()}
    return content_hash(task.identity, asdict(settings), shapes)[:32]
