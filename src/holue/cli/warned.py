"""Warnings of the library, as a command prints them: one line each, on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holue.cli.spelling import spelled


@contextmanager
def plain_warnings(command: Any) -> Iterator[None]:
    """Print a ``UserWarning`` as ``warning: …``, with the options of the command, and without the line of code it came from.

    Every other kind of warning is about code, and keeps Python's own form.
    """
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **rest: Any) -> None:
            if issubclass(category, UserWarning):
                print(f"warning: {spelled(str(message), command)}", file=sys.stderr)
            else:
                usual(message, category, *where, **rest)

        warnings.showwarning = show
        yield
