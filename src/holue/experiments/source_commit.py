"""Source commit: which state of this package's source made a number."""

from __future__ import annotations

import subprocess
from pathlib import Path

UNKNOWN = "unknown"
"""Of a package that was installed, not checked out."""
CHANGED = " with changes"


def source_commit(folder: Path = Path(__file__).parents[1]) -> str:
    """The commit of the checkout that ``folder`` is part of, and whether files in it differ from that commit."""
    # A package installed inside another project's checkout is not part of that project's commit.
    if _git(folder, "ls-files", "--error-unmatch", "__init__.py") is None:
        return UNKNOWN
    commit, changed = _git(folder, "rev-parse", "--short=10", "HEAD"), _git(folder, "status", "--porcelain", ".")
    if commit is None or changed is None:
        return UNKNOWN
    return commit + (CHANGED if changed else "")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        found = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except OSError:  # there is no git here
        return None
    return found.stdout.strip() if found.returncode == 0 else None
