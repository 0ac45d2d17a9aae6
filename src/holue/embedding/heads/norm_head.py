"""NormHead: a fitted NormConcentration as a file, with the recogniser it belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from holue.embedding.heads.norm_concentration import NormConcentration
from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.onnx_name import onnx_file
from holue.embedding.training.class_centres import in_genuine_pairs
from holue.errors import (
    CalibrationDataError,
    CorruptArtifactError,
    InvalidEmbeddingsError,
    InvalidFileError,
    InvalidSubjectsError,
    NewerArtifactError,
)

FORMAT = 1
SMALLEST_SPREAD = 1e-3
"""Standard deviation of ln ‖e‖ below which lengths count as equal; float16 rounds a length of 1 by up to 5e-4."""


@dataclass(frozen=True, eq=False)
class NormHead:
    """The law ``κ = e^a ‖e‖^b`` of one recogniser, named by its fingerprint ("" where it is not known)."""

    law: NormConcentration
    recogniser: str
    details: Mapping[str, int] = field(default_factory=dict)
    name: str = "norm"

    kind = "norm"
    output = "concentration"

    @classmethod
    def fit(cls, file: EmbeddingFile) -> NormHead:
        """Fit on the raw embeddings of a file; subjects with one sample are left out, and counted in ``details``."""
        spread = float(np.log(np.maximum(file.norms, np.finfo(np.float64).tiny)).std())
        if spread < SMALLEST_SPREAD:
            raise CalibrationDataError(
                f"all embeddings have the same length, {np.median(file.norms):.3g}, so their length says nothing of "
                "their quality; give them as the model wrote them, before they are scaled to length 1"
            )
        paired = in_genuine_pairs(file.subject_id)
        left_out = int((~paired).sum())
        if not paired.any():
            raise InvalidSubjectsError(
                f"each of the {left_out} subjects in subject_id has one sample, and the law is fitted to pairs of samples "
                "of one subject; give several samples of each subject"
            )
        used = file.take(paired)
        law = NormConcentration.fit(used.embeddings, used.subject_id)
        counts = {
            "samples": len(used),
            "subjects": len(np.unique(used.subject_id)),
            "subjects_left_out": left_out,
        }
        return cls(law, file.fingerprint, counts)

    def predict_file(self, file: EmbeddingFile) -> Float32Array:
        """The concentrations of a file's samples, which must be of the recogniser the law was fitted on."""
        if self.recogniser and file.fingerprint != self.recogniser:
            raise InvalidEmbeddingsError(
                f"{self.name} was fitted on the recogniser {self.recogniser[:12]}, the embeddings are of "
                f"{file.fingerprint[:12] or 'an unknown one'}; embed with the same model, or fit a law for this one"
            )
        return self.law.transform(file.embeddings).astype(np.float32)

    def save(self, path: str | Path) -> Path:
        """Write ``path.json``."""
        written = norm_file(path)
        record = {"format": FORMAT, "kind": self.kind, "recogniser": self.recogniser, **asdict(self.law)}
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(json.dumps(record | {"details": dict(self.details)}, indent=2) + "\n", encoding="utf-8")
        return written

    @classmethod
    def load(cls, path: str | Path) -> NormHead:
        """Read what :meth:`save` wrote."""
        written = norm_file(path)
        record = read_record(written)
        if record.get("kind") != cls.kind:
            raise CorruptArtifactError(
                f"{written}: kind is {record.get('kind')!r}, not 'norm'; `holue train norm` writes it"
            )
        try:
            known = int(record.get("format", 0))
            if known > FORMAT:
                raise NewerArtifactError(f"{written}: format {known} is newer than {FORMAT}; update holue")
            law = NormConcentration.from_json(json.dumps(record))
        except (InvalidFileError, TypeError, ValueError) as error:
            raise CorruptArtifactError(f"{written}: {error}; train it again with `holue train norm`") from error
        return cls(law, str(record.get("recogniser", "")), dict(record.get("details", {})), written.name)


def norm_file(name: str | Path) -> Path:
    """``name.json``, whether or not the suffix is given.

    >>> [norm_file(name).as_posix() for name in ("heads/norm", "norm-1.2", "norm.json")]
    ['heads/norm.json', 'norm-1.2.json', 'norm.json']
    """
    return onnx_file(name).with_suffix(".json")


def read_record(path: Path) -> dict[str, Any]:
    """The JSON object in a file that describes a head."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(f"{path}: not the record of a head ({error}); train it again") from error
    if not isinstance(record, dict):
        raise CorruptArtifactError(f"{path}: not the record of a head; train it again")
    return record
