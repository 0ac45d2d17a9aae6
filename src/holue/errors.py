"""Errors: everything a user can get wrong, in one tree.

HolueError
├── InvalidInputError (ValueError)      a value breaks a rule
│   ├── InvalidEmbeddingsError          zero, NaN, wrong dimension, complex or object vectors
│   ├── InvalidConcentrationError       κ ≤ 0, infinite, or as many as there are no probes for
│   ├── InvalidSubjectsError            missing, duplicate, mixed or unknown subject ids
│   ├── InvalidParameterError           a setting outside its range
│   ├── GalleryTooSmallError            no subject, or one where two are needed
│   ├── CalibrationDataError            validation probes that cannot settle an operating point
│   ├── UnreachableThresholdError       no concentration gives this threshold
│   ├── InvalidFileError                a file of the user's that cannot be read as it should
│   ├── NotFoundError                   nothing is kept under this number or name
│   └── ConflictError                   what is to be changed is in a state that does not allow it
├── AccessError                         a key does not allow it
│   ├── InvalidKeyError                 there is no such key, or it has expired or was revoked
│   ├── TooManyWrongKeysError           wait: this address has sent wrong keys
│   └── NotPermittedError               the role of the key lacks a permission
├── NotReadyError (NotFittedError)      a verb used before the one it builds on
│   ├── NotFittedYetError               fit first
│   └── NotCalibratedError              calibrate first
├── ArtifactError                       a saved directory that cannot be trusted
│   ├── CorruptArtifactError            a file is missing, changed or unreadable
│   ├── NewerArtifactError              written by a later version of the format
│   └── UnsafeArtifactError             it holds a pickle
├── CannotWriteError (OSError)          a file or folder cannot be written: no space, no permission
├── StoreError                          a store of a gallery that cannot be opened, read or written
│   ├── StoreLockedError                another process writes to it
│   ├── StoreUnavailableError           its server cannot be reached; reads go on from the local copy
│   ├── IncompleteSearchError           shards of a cluster cannot be reached, and all are needed
│   ├── CorruptStoreError               a file of it is missing, cut or changed
│   └── ErasureIncompleteError          erased data may still be in a file; the erasure goes on at the next opening
├── TrainingDivergedError (ArithmeticError)  the loss is no longer a number
└── MissingDependencyError (ImportError)  an extra is not installed

Each message names the field, the rule, the value and a way out.
"""

from __future__ import annotations

from sklearn.exceptions import NotFittedError


class HolueError(Exception):
    """The root: catch this to catch everything holue raises on purpose."""


class InvalidInputError(HolueError, ValueError):
    """A value breaks a rule."""


class InvalidEmbeddingsError(InvalidInputError):
    """Embeddings are zero, not finite, of the wrong shape or of the wrong kind."""


class InvalidConcentrationError(InvalidInputError):
    """A concentration is not a positive finite number, or their count does not match."""


class InvalidSubjectsError(InvalidInputError):
    """Subject ids are missing, duplicated, of mixed types, or not enrolled."""


class InvalidParameterError(InvalidInputError):
    """A setting lies outside its range."""


class UnsuitableSearchError(InvalidParameterError):
    """The way a gallery is to be read would not keep its promise, or gains nothing; the message names a better one."""


class GalleryTooSmallError(InvalidInputError):
    """The gallery holds fewer subjects than the operation needs."""


class CalibrationDataError(InvalidInputError):
    """Validation probes cannot settle an operating point or a quality score."""


class UnreachableThresholdError(InvalidInputError):
    """No concentration gives the wanted threshold at this prior."""


class InvalidFileError(InvalidInputError):
    """A file cannot be read as what it should be; the message names the file and the key."""


class NotFoundError(InvalidInputError):
    """Nothing is kept under this number or name."""


class ConflictError(InvalidInputError):
    """What is to be changed is in a state that does not allow it."""


class AccessError(HolueError):
    """A key does not allow what was asked."""


class InvalidKeyError(AccessError):
    """There is no such key, or it has expired or was revoked; the message does not say which."""


class TooManyWrongKeysError(AccessError):
    """An address has sent wrong keys; ``retry_after`` says how many seconds it has to wait."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(f"wrong keys came from this address; try again in {retry_after:.1f} seconds")
        self.retry_after = retry_after


class NotPermittedError(AccessError):
    """The role of the key lacks a permission."""


class NotReadyError(HolueError, NotFittedError):  # type: ignore[misc]
    """A verb was used before the one it builds on."""


class NotFittedYetError(NotReadyError):
    """The recogniser has no gallery yet: call ``fit`` first."""


class NotCalibratedError(NotReadyError):
    """The recogniser has no operating point or no fitted quality yet: call ``calibrate`` first."""


class ArtifactError(HolueError):
    """A saved directory cannot be loaded or written."""


class CorruptArtifactError(ArtifactError):
    """A file of the directory is missing, changed or unreadable."""


class NewerArtifactError(ArtifactError):
    """The directory was written by a later version of the format."""


class UnsafeArtifactError(ArtifactError):
    """The directory holds a pickle, which could run code when loaded."""


class CannotWriteError(HolueError, OSError):
    """A file or folder cannot be written; what was there before is unchanged."""


class StoreError(HolueError):
    """A store cannot be opened, read or written."""


class StoreLockedError(StoreError):
    """Another writer has the store open."""


class StoreUnavailableError(StoreError):
    """The server of a store cannot be reached; reads go on from the local copy."""


class IncompleteSearchError(StoreError):
    """Shards of a cluster cannot be reached, and what was asked needs all of them."""


class CorruptStoreError(StoreError):
    """A file of the store is missing, cut off or changed."""


class ErasureIncompleteError(StoreError):
    """An erasure could not be finished; it is completed when the store is next opened for writing."""


class TrainingDivergedError(HolueError, ArithmeticError):
    """The loss of a training became infinite or NaN."""


class MissingDependencyError(HolueError, ImportError):
    """An optional dependency is not installed; the message carries the install line."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'holue[{extra}]'")
