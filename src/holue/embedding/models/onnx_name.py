"""ONNX name: the file a model is written to and read from, by the name that a user gave it."""

from __future__ import annotations

from pathlib import Path

from holue.errors import InvalidParameterError


def onnx_file(name: str | Path) -> Path:
    """``name.onnx``, beside which ``name.json`` lies; either of the two may be named in full, and any other dot is kept.

    >>> [onnx_file(name).as_posix() for name in ("heads/scf", "scf-1.2", "scf-1.2.onnx", "scf-1.2.json")]
    ['heads/scf.onnx', 'scf-1.2.onnx', 'scf-1.2.onnx', 'scf-1.2.onnx']
    """
    path = Path(name)
    if path.name in ("", ".."):
        raise InvalidParameterError(
            f"{str(name)!r} names a folder; give the name of a file in it, such as {path / 'scf'}"
        )
    if path.suffix == ".onnx":
        return path
    return path.with_name(f"{path.stem if path.suffix == '.json' else path.name}.onnx")
