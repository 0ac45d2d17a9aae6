"""EmbeddingFile: raw embeddings on disk, with who they are of and which model made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact.archive import read_archive, write_archive
from holue.errors import InvalidEmbeddingsError, InvalidFileError
from holue.gallery.embeddings import FloatArray, as_vectors, normalize

Names = npt.NDArray[np.str_]
FORMAT = 1
OWN = ("format", "embeddings", "features", "sample_id", "subject_id", "fingerprint", "model", "skipped")
"""The keys that are no columns."""


@dataclass(frozen=True, eq=False)
class EmbeddingFile:
    """Raw embeddings (n, d), whose norms carry quality; features (n, f) where the model has a bottleneck.

    ``fingerprint`` is "" in a file that other software made: nothing is known then of the model. ``columns`` holds what else is
    known of each sample, an array of n rows by name: ``media_id``, where in its medium it was found, how good it is.
    ``skipped`` names the inputs in which there was nothing to embed.

    >>> sample, subject = np.array(["ann/1.jpg"]), np.array(["ann"])
    >>> file = EmbeddingFile(np.array([[3.0, 4.0]]), None, sample, subject, "f00d", "tiny")
    >>> file.norms, file.directions
    (array([5.]), array([[0.6, 0.8]]))
    """

    embeddings: FloatArray
    features: FloatArray | None
    sample_id: Names
    subject_id: Names
    fingerprint: str
    model: str
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def norms(self) -> npt.NDArray[np.float64]:
        """‖e‖ of every raw embedding."""
        norms: npt.NDArray[np.float64] = np.linalg.norm(self.embeddings.astype(np.float64), axis=1)
        return norms

    @property
    def directions(self) -> FloatArray:
        """The embeddings, each divided by its norm."""
        return normalize(self.embeddings, field="embeddings")

    def take(self, rows: npt.NDArray[Any]) -> EmbeddingFile:
        """The samples at ``rows`` (indices or a mask)."""
        features = None if self.features is None else self.features[rows]
        return replace(
            self,
            embeddings=self.embeddings[rows],
            features=features,
            sample_id=self.sample_id[rows],
            subject_id=self.subject_id[rows],
            columns={name: column[rows] for name, column in self.columns.items()},
        )

    def save(self, path: str | Path) -> None:
        """Write an ``.npz`` without pickles, whole or not at all."""
        arrays: dict[str, npt.NDArray[Any]] = {
            **self.columns,
            "format": np.asarray(FORMAT),
            "embeddings": self.embeddings,
            "sample_id": self.sample_id.astype(np.str_),
            "subject_id": self.subject_id.astype(np.str_),
            "fingerprint": np.asarray(self.fingerprint),
            "model": np.asarray(self.model),
        }
        if self.features is not None:
            arrays["features"] = self.features
        if self.skipped:
            arrays["skipped"] = np.array(self.skipped)
        write_archive(path, arrays)

    @classmethod
    def load(cls, path: str | Path) -> EmbeddingFile:
        """Read what :meth:`save` wrote, or an ``.npz`` with ``embeddings`` and ``subject_id``.

        Samples without ``sample_id`` are named by their row.
        """
        path = Path(path)
        arrays = read_archive(path)
        if int(arrays.get("format", np.asarray(FORMAT))) > FORMAT:
            raise InvalidFileError(f"{path}: format {arrays['format']} is newer than {FORMAT}; update holue")
        for key in ("embeddings", "subject_id"):
            if key not in arrays:
                raise InvalidFileError(f"{path}: the array {key!r} is missing; it holds {', '.join(sorted(arrays))}")
        embeddings = as_vectors(arrays["embeddings"], field=f"{path}: embeddings")
        features = arrays.get("features")
        for key in ("sample_id", "subject_id", "features"):
            if key in arrays and len(arrays[key]) != len(embeddings):
                raise InvalidFileError(f"{path}: {key} has {len(arrays[key])} rows for {len(embeddings)} embeddings")
        return cls(
            embeddings,
            None if features is None else as_vectors(features, field=f"{path}: features"),
            arrays.get("sample_id", np.arange(len(embeddings))).astype(np.str_),
            arrays["subject_id"].astype(np.str_),
            str(arrays.get("fingerprint", "")),
            str(arrays.get("model", "")),
            {
                name: array
                for name, array in arrays.items()
                if name not in OWN and array.ndim > 0 and len(array) == len(embeddings)
            },
            tuple(arrays.get("skipped", np.array([], np.str_)).astype(np.str_).tolist()),
        )


def joined(files: Sequence[EmbeddingFile]) -> EmbeddingFile:
    """The samples of several files of one model with the same columns, one after the other; features where all have them."""
    first = files[0]
    features = [file.features for file in files if file.features is not None]
    return replace(
        first,
        embeddings=np.concatenate([file.embeddings for file in files]),
        features=np.concatenate(features) if len(features) == len(files) else None,
        sample_id=np.concatenate([file.sample_id for file in files]),
        subject_id=np.concatenate([file.subject_id for file in files]),
        columns={name: np.concatenate([file.columns[name] for file in files]) for name in first.columns},
        skipped=tuple(name for file in files for name in file.skipped),
    )


def require_same_fingerprint(*files: EmbeddingFile, allow_unknown: bool = False) -> None:
    """Refuse to mix embeddings of different models: their cosines mean nothing.

    A file without a fingerprint is refused too, unless ``allow_unknown``: then only dimensions are compared.
    """
    for file in files:
        if not file.fingerprint and not allow_unknown:
            raise InvalidEmbeddingsError(
                "an embedding file carries no fingerprint, so its model is not known; embed the samples with "
                "`holue embed`, or pass allow_unknown=True if you are sure of the model"
            )
        if file.embeddings.shape[1] != files[0].embeddings.shape[1]:
            raise InvalidEmbeddingsError(
                f"embeddings of {files[0].embeddings.shape[1]} and of {file.embeddings.shape[1]} dimensions "
                "cannot be compared; embed gallery and probes with one model"
            )
    known = {file.fingerprint: file.model for file in files if file.fingerprint}
    if len(known) > 1:
        listed = ", ".join(f"{model or 'unnamed'} ({fingerprint[:12]})" for fingerprint, model in known.items())
        raise InvalidEmbeddingsError(
            f"embeddings come from different models or preprocessing: {listed}; embed gallery and probes with one model"
        )
