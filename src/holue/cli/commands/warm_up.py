"""``holue warm-up``: compile everything now, so that no first call waits for it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict

from holue.cli.output import Json, print_json, say
from holue.progress import progress_bar
from holue.recognition.warm_up import warm_up as compile_all


def warm_up(json: Json = False) -> None:
    """Compile all inner loops now, so that no later process has to wait for it.

    holue compiles its inner loops at the first use and caches them, so the first calls on a machine take some seconds longer.
    Run this command after the installation, or when you build a container: `RUN holue warm-up`. The compiled code is for one
    kind of processor; on another it is compiled again. The cache is beside the package or, if that is read-only, in your cache
    directory. Set `NUMBA_CACHE_DIR`, for this command and for later runs, to use another directory. Example: `holue warm-up`
    """
    with nullcontext() if json else progress_bar("compiling") as progress:
        done = compile_all(progress)
    if json:
        print_json(asdict(done))
        return
    found = "all had been compiled before" if done.compiled == 0 else f"{done.compiled} functions compiled"
    say(f"Ready after {done.seconds:.0f} s: {found}.")
    if done.kept:
        say(f"They are kept in {done.place} and the folders beside it.")
    else:
        say(
            "No directory for them can be written, so later processes compile again: set NUMBA_CACHE_DIR to one that can."
        )
