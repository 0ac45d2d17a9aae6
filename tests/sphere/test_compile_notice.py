"""A first call that waits for the compiler says why."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
from numba.core.event import install_listener

from holue.sphere.compile_notice import SENTENCE, CompileNotice
from holue.sphere.compiled import njit


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def event(module: str) -> SimpleNamespace:
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


def test_it_is_said_once_and_before_a_function_is_compiled() -> None:
    shown = Terminal()

    def double(x):
        return x * 2

    double.__module__ = "holue.somewhere"
    with install_listener("numba:compile", CompileNotice(shown)):
        function = njit()(double)
        assert shown.getvalue() == ""
        function(1.0)
        assert shown.getvalue() == SENTENCE + "\n"
        function(np.float32(1.0))
    assert shown.getvalue() == SENTENCE + "\n"


def test_it_is_not_said_into_files_or_about_functions_of_others() -> None:
    piped, shown = io.StringIO(), Terminal()
    CompileNotice(piped).on_start(event("holue.evidence.scan"))
    CompileNotice(shown).on_start(event("somebody.else"))
    assert piped.getvalue() == shown.getvalue() == ""
