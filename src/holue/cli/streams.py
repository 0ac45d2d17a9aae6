"""Streams: standard output and error that take every character, and whose failure is told in one line."""

from __future__ import annotations

import codecs
import os
import sys

PLAIN = {
    "−": "-", "–": "-", "…": "...", "×": "x", "·": "*", "≤": "<=", "≥": ">=", "≈": "~", "±": "+-", "→": "->", "′": "'",
    "κ": "kappa", "τ": "tau", "β": "beta", "σ": "sigma", "²": "^2", "“": '"', "”": '"', "’": "'",
}  # fmt: skip
"""What holue itself prints beyond ASCII, as an ASCII terminal can show it."""


def accept_all_characters() -> None:
    """Have the standard streams write what their encoding lacks in plain letters, or as ``?``, and never fail."""
    codecs.register_error("holue-plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="holue-plain")


def is_unicode() -> bool:
    """Whether standard output takes every character as it is."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def close_output() -> OSError | None:
    """Write out what is left; where that fails, give the error and keep the interpreter from trying again."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return error
    except ValueError:  # closed
        pass
    return None


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in lost), error.end
