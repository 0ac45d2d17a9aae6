"""``holue warm-up``: compile everything now, so that no first call waits for it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict

from holue.cli.output import Json, print_json, say
from holue.progress import progress_bar
from holue.recognition.warm_up import warm_up as compile_all


def warm_up(json: Json = False) -> None:
    """Compile every inner loop now, once per machine: later processes start at once.

    holue compiles its inner loops when they are first used and keeps the result; the very first call on a machine therefore
    waits some seconds. Run this when you install, or while a container is built: `RUN holue warm-up`. The code fits the
    processor it was compiled on; on another kind of processor it is compiled anew. It is kept beside the package, else in your
    cache directory; set `NUMBA_CACHE_DIR`, for this and for later runs, to keep it elsewhere. Example: `holue warm-up`
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
