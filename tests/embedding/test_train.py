from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from holue.embedding.training.checkpoint import Checkpoint  # noqa: E402
from holue.embedding.training.train import TrainingSettings, held_out_rows, one_cycle_rate, train  # noqa: E402
from holue.errors import InvalidFileError, InvalidParameterError, InvalidSubjectsError, TrainingDivergedError  # noqa: E402

SETTINGS = TrainingSettings(epochs=6, peak_learning_rate=0.05, seed=3)


class StopHereError(Exception):
    pass


@dataclass
class Line:
    """A network with dropout and batch normalisation learns y = 3x: both have state that resuming can lose."""

    held_out: list[float] | None = None
    poison: int | None = None
    asked: int = 0

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        layers = torch.nn.Linear(1, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.05), torch.nn.Linear(8, 1)
        self.module = torch.nn.Sequential(*layers)

    identity = "line"
    steps = 4

    def batches(self, rng: np.random.Generator) -> Iterable[tuple[torch.Tensor, ...]]:
        for _ in range(self.steps):
            x = torch.from_numpy(rng.standard_normal((16, 1)).astype(np.float32))
            yield x, 3 * x

    def loss(self, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        self.asked += 1
        scale = float("nan") if self.asked == self.poison else 1.0
        return scale * (self.module(batch[0]) - batch[1]).square().mean()

    def held_out_loss(self) -> float | None:
        if self.held_out is None:
            return None
        return self.held_out.pop(0)


def weights(task: Line) -> list[np.ndarray]:
    return [tensor.numpy() for tensor in task.module.state_dict().values()]


def test_training_lowers_the_loss_and_is_the_same_twice() -> None:
    first, second = Line(), Line()
    history = train(first, SETTINGS)
    assert history.training_loss[-1] < 0.8 * history.training_loss[0]
    assert history == train(second, SETTINGS)
    for ours, theirs in zip(weights(first), weights(second)):
        np.testing.assert_array_equal(ours, theirs)
    assert train(Line(), replace(SETTINGS, seed=4)).training_loss != history.training_loss


def test_a_resumed_training_ends_where_an_unbroken_one_does(tmp_path: Path) -> None:
    def stop(done: int, total: int, note: str = "") -> None:
        if done == 3:
            raise StopHereError

    unbroken, broken, resumed = Line(), Line(), Line()
    history = train(unbroken, SETTINGS)
    with pytest.raises(StopHereError):
        train(broken, SETTINGS, checkpoint_dir=tmp_path, progress=stop)
    assert train(resumed, SETTINGS, checkpoint_dir=tmp_path) == history
    assert resumed.asked == 3 * Line.steps
    for ours, theirs in zip(weights(resumed), weights(unbroken)):
        np.testing.assert_array_equal(ours, theirs)


def test_a_finished_training_is_only_read(tmp_path: Path) -> None:
    first, again = Line(), Line()
    history = train(first, SETTINGS, checkpoint_dir=tmp_path)
    assert train(again, SETTINGS, checkpoint_dir=tmp_path) == history
    assert again.asked == 0
    np.testing.assert_array_equal(weights(again)[0], weights(first)[0])


def test_other_settings_do_not_continue_a_checkpoint(tmp_path: Path) -> None:
    train(Line(), SETTINGS, checkpoint_dir=tmp_path)
    other = Line()
    train(other, replace(SETTINGS, weight_decay=0.5), checkpoint_dir=tmp_path)
    assert other.asked == 6 * Line.steps
    assert len(list(tmp_path.iterdir())) == 2


def test_training_stops_early_and_keeps_the_best_epoch(tmp_path: Path) -> None:
    task = Line(held_out=[3.0, 1.0, 2.0, 2.0, 9.0, 9.0])
    history = train(task, replace(SETTINGS, patience=2), checkpoint_dir=tmp_path)
    assert (history.best_epoch, history.held_out_loss) == (1, [3.0, 1.0, 2.0, 2.0])
    two_epochs = Line(held_out=[3.0, 1.0, 2.0, 2.0])
    with pytest.raises(StopHereError):
        train(two_epochs, replace(SETTINGS, patience=2), progress=_stop_after_two)
    for ours, theirs in zip(weights(task), weights(two_epochs)):
        np.testing.assert_array_equal(ours, theirs)


def _stop_after_two(done: int, total: int, note: str = "") -> None:
    if done == 2:
        raise StopHereError


def test_a_loss_that_is_not_finite_stops_with_step_rate_and_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(
        TrainingDivergedError, match=r"became nan at step 9 \(epoch 3\) with learning rate 0.0\d+"
    ) as caught:
        train(Line(poison=10), SETTINGS, checkpoint_dir=tmp_path)
    (kept,) = tmp_path.iterdir()
    assert f"the last good checkpoint is {kept}" in str(caught.value)
    assert len(Checkpoint.load(kept).story["training_loss"]) == 2
    resumed = Line()
    train(resumed, SETTINGS, checkpoint_dir=tmp_path)
    assert resumed.asked == 4 * Line.steps
    with pytest.raises(TrainingDivergedError, match=r"step 0 .*no checkpoint was asked for; lower peak_learning_rate"):
        train(Line(poison=1), SETTINGS)
    with pytest.raises(TrainingDivergedError, match=r"became nan at step 3"):
        train(Line(held_out=[float("nan")]), SETTINGS)


def test_the_learning_rate_is_torchs_one_cycle() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=40)
    for step in range(40):
        assert one_cycle_rate(step, 40, 0.1) == pytest.approx(scheduler.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        if step < 39:
            scheduler.step()


def test_held_out_subjects_are_whole() -> None:
    subjects = np.repeat(np.arange(20), 3)
    rows = held_out_rows(subjects, TrainingSettings(held_out=0.2))
    assert len(np.unique(subjects[rows])) == 4
    assert not np.isin(subjects[~rows], subjects[rows]).any()
    assert not held_out_rows(subjects, TrainingSettings(held_out=0.0)).any()
    with pytest.raises(InvalidSubjectsError, match=r"held_out=0.02 of 20 subjects holds out 0"):
        held_out_rows(subjects, TrainingSettings(held_out=0.02))


@pytest.mark.parametrize(
    ("field", "value"),
    [("epochs", 0), ("peak_learning_rate", 0.0), ("weight_decay", -1.0), ("held_out", 1.0), ("threads", 0)],
)
def test_settings_outside_their_range_are_named(field: str, value: float) -> None:
    with pytest.raises(InvalidParameterError, match=field):
        TrainingSettings(**{field: value})  # type: ignore[arg-type]


def test_a_file_that_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", weights=np.zeros(3))
    with pytest.raises(InvalidFileError, match=r"x.npz: not a checkpoint"):
        Checkpoint.load(tmp_path / "x.npz")
