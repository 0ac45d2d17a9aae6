"""The command line: one command per verb, thin; the library does the work."""

from __future__ import annotations

import sys

from holue.cli.interrupt import INTERRUPTED, quitting, send_lost_interrupts_again


def main() -> None:
    """Run ``holue``; what a user got wrong is one line and exit code 2, Ctrl-C is exit code 130, never a traceback."""
    send_lost_interrupts_again()
    try:
        code = _run()
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _run() -> int:
    from holue.cli.streams import accept_all_characters, close_output

    accept_all_characters()
    code = 0
    try:
        with quitting():
            from holue.cli.app import app

        app()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        code = _fail(f"the holue command needs {error.name}; run: pip install 'holue[cli]'", 1)
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except Exception as error:
        code = _told(error)
    unwritten = close_output()
    if unwritten is not None and code == 0:
        code = _told(unwritten)
    return code


def _told(error: Exception) -> int:
    """Tell an error of the user's or of the system's in one line; any other is a fault of holue's, and keeps its traceback."""
    from holue.errors import HolueError

    if isinstance(error, HolueError):
        return _fail(f"error: {error}", 2)
    if isinstance(error, BrokenPipeError):
        return 1  # whoever read the output has seen enough
    if isinstance(error, OSError):
        where = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"error: {where}{error.strerror or error}", 2)
    if isinstance(error, MemoryError):
        return _fail(f"error: not enough memory ({error})", 2)
    raise error


def _fail(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code
