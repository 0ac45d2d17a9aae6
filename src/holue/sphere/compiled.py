"""Compiled: inner loops over numbers, turned into machine code.

Compiled code is cached in ``NUMBA_CACHE_DIR``, or beside the source, or, where that is read-only, in the user's cache directory.
Take ``njit`` from here, not from numba: numba raises where there is no such directory, and it compares a cached function only
with the file that defines it. A compiled function contains what it calls, so here it is compared with every file of the
package that its own file imports, directly or not.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numba
import numpy as np

from holue.sphere import compile_notice as compile_notice  # registers itself
from holue.sphere.parameters import FloatArray

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(rf"^\s*(?:from|import) {_PACKAGE.name}\.([\w.]+)(?: import (\([^)]*\)|.*))?", re.MULTILINE)


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` with ``options``; with ``cache=True`` a change in any imported file of the package compiles anew."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**options)(function)
        if options.get("cache"):
            # numba drops a cached function whose stamp differs; its own stamp is of one file only.
            stored = dispatcher._cache._cache_file
            stored._source_stamp = stored._source_stamp, sources_digest(Path(function.__code__.co_filename))
        return dispatcher

    return decorate


@cache
def sources_digest(file: Path) -> str:
    """A digest of a source file and of all files of the package that it imports, directly or not."""
    seen, waiting = {file}, [file]
    while waiting:
        for found in _imported(waiting.pop()) - seen:
            seen.add(found)
            waiting.append(found)
    digest = blake2b(digest_size=16)
    for path in sorted(seen):
        digest.update(_source(path))
    return digest.hexdigest()


@cache
def _source(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # an interactive session, or a package inside an archive
        return b""


@cache
def _imported(file: Path) -> set[Path]:
    """The files of the package that a file names in its imports."""
    files = set()
    for module, names in _IMPORT.findall(_source(file).decode(errors="replace")):
        path = _PACKAGE.joinpath(*module.split("."))
        files |= {path.with_suffix(".py"), *(path / f"{name}.py" for name in re.findall(r"\w+", names))}
    return {path for path in files if path.is_file()}


def cache_directory(function: Callable[..., Any]) -> str:
    """Where the machine code of a compiled function is cached."""
    return str(function.stats.cache_path)  # type: ignore[attr-defined]


def find_cache_directory() -> bool:
    """Cache compiled code for the life of the process where it cannot be kept for longer (False): each process compiles anew."""
    try:
        numba.njit(cache=True)(find_cache_directory)
    except RuntimeError:
        # A private directory, not a shared one: numba runs what it finds there.
        directory = tempfile.mkdtemp(prefix="holue-compiled-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        numba.config.CACHE_DIR = directory  # type: ignore[attr-defined]
        return False
    return True


kept = find_cache_directory()
"""Whether later processes find what this one compiles."""


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile on the first call, keep the result on disk, and let other threads run meanwhile.

    Division by zero and overflow follow IEEE 754, as in numpy; callers see to it that they do not happen.
    Sums keep the order they are written in (no ``fastmath``): the accuracy of the formulas depends on it.
    """
    decorate = njit(cache=True, nogil=True, error_model="numpy")
    return cast(Callable[_Arguments, _Result], decorate(function))


def apply(
    kernel: Callable[Concatenate[FloatArray, _Arguments], FloatArray],
    values: FloatArray,
    *arguments: _Arguments.args,
    **options: _Arguments.kwargs,
) -> FloatArray:
    """Run a compiled loop over an array of any shape, the loop itself knowing only flat ones.

    Read-only arrays are copied: to the compiler they are another type, which would be compiled a second time.

    >>> apply(lambda flat, factor: factor * flat, np.ones((1, 2)), 3.0)
    array([[3., 3.]])
    """
    as_is = values.flags.c_contiguous and values.flags.writeable
    flat = (values if as_is else np.require(values, requirements=["C", "W"])).reshape(-1)
    return kernel(flat, *arguments, **options).reshape(values.shape)
