"""Progress: how long work tells its caller how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from holue.errors import MissingDependencyError


class Progress(Protocol):
    """Anything that can be called with the units done, the units in total, and a short note."""

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Take notice that ``done`` of ``total`` units are finished."""


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """A bar on standard error, fed through the callable it yields.

    >>> with progress_bar("embedding") as progress:
    ...     progress(1, 2, "a.jpg")
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
    except ImportError as error:
        raise MissingDependencyError("rich", "cli") from error
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None, note="")

        def advance(done: int, total: int, note: str = "") -> None:
            bar.update(task, completed=done, total=total, note=note)

        yield advance


@contextmanager
def working(title: str, *, quiet: bool = False) -> Iterator[None]:
    """A moving bar with the seconds passed, on standard error, while work goes on whose length is not known.

    Nothing is shown where standard error is not a terminal.

    >>> with working("verifying"):
    ...     pass
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress
    except ImportError as error:
        raise MissingDependencyError("rich", "cli") from error
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        bar.add_task(title, total=None)
        yield
