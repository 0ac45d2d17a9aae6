"""The command line: one command per verb, thin; the library does the work."""

from __future__ import annotations

import sys


def main() -> None:
    """Run ``holue``; what a user got wrong is one line and exit code 2, never a traceback."""
    try:
        from holue.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"the holue command needs {error.name}; run: pip install 'holue[cli]'")
    from holue.errors import HolueError

    try:
        app()
    except HolueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
