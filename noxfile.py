"""Sessions of nox: the tests on every supported Python that this machine has, and the built wheel on its own."""

import os
from pathlib import Path

import nox

PYTHONS = ["3.11", "3.12", "3.13"]

nox.options.error_on_missing_interpreters = False
nox.options.reuse_venv = "yes"


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Install holue with all extras into an environment of its own, and run the tests; arguments go to pytest."""
    session.install("--requirement", "requirements-dev.txt")
    session.install("--editable", ".[dev]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(reuse_venv=False)
def wheel(session: nox.Session) -> None:
    """Install the wheel in dist/ into a fresh environment, and use it far from the sources."""
    wheels = sorted(Path("dist").resolve().glob("holue-*.whl"))
    if len(wheels) != 1:
        session.error(f"dist/ holds {len(wheels)} wheels of holue, one is needed; run: make dist")
    session.install(f"holue[demo] @ {wheels[0].as_uri()}", "pytest")
    session.chdir(session.create_tmp())
    session.run("holue", "--version")
    session.run("holue", "demo", "--help", silent=True)
    session.run("python", "-c", "from holue.datasets.glyphs.model import glyph_embedder; glyph_embedder()")
    packages = ["holue.sphere", "holue.gallery", "holue.functional"]
    session.run("python", "-m", "pytest", "-q", "-c", os.devnull, "--doctest-modules", "--pyargs", *packages)
