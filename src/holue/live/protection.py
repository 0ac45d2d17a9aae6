"""Protection: the samples of a gallery are stored turned by a secret rotation of the sphere.

A rotation Q keeps every cosine, (Qx)·(Qy) = x·y, so a gallery answers as before, up to rounding (float32: under 1e-6). Q is drawn
uniformly from all rotations and reflections (Haar measure): a matrix of normal numbers, read from SHAKE-256(key ‖ salt), is
decomposed into Q and R with a positive diagonal of R. The salt belongs to the gallery, so that galleries under one key cannot be
compared either.

Who has the files and not the key cannot simply compare them with an embedding, nor turn them back into a picture. It is no
encryption; docs/privacy.md says what it does not protect against.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.recognition.state.moment import Moment
from holue.store.protocol import Store
from holue.store.values import Enrolled, Float32Array, SubjectId

ARTIFACT = "protection"
VARIABLE = "HOLUE_TEMPLATE_KEY"
KEY_BYTES, NONCE_BYTES = 32, 16


class Rotation:
    """A secret rotation of the sphere.

    >>> rotation = Rotation.of(bytes(32), b"salt", dim=3)
    >>> turned = rotation.turned([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0]])
    >>> round(float(turned[0] @ turned[1]), 6)
    0.6
    """

    def __init__(self, matrix: Float64Array, secret: bytes) -> None:
        self._matrix, self._secret = matrix, secret

    @classmethod
    def of(cls, key: bytes, salt: bytes, dim: int) -> Rotation:
        """The rotation of a key and a salt; the same on every machine, up to rounding."""
        stream = hashlib.shake_256(b"holue rotation" + key + salt).digest(8 * dim * dim)
        uniform = (np.frombuffer(stream, "<u8") >> 11) * 2.0**-53 + 2.0**-54
        q, r = np.linalg.qr(ndtri(uniform).reshape(dim, dim))
        return cls(q * np.sign(np.diag(r)), hashlib.shake_256(b"holue pictures" + key + salt).digest(KEY_BYTES))

    def turned(self, X: object) -> Any:
        """Rows turned, float32; what is no matrix of as many columns is returned as it is, for others to refuse."""
        return self._times(X, self._matrix.T)

    def turned_back(self, X: object) -> Any:
        """The rows as they were, up to rounding."""
        return self._times(X, self._matrix)

    def covered(self, content: bytes) -> bytes:
        """Bytes that are kept beside the samples, such as a picture: a nonce, then content ⊕ SHAKE-256(secret ‖ nonce).

        >>> rotation = Rotation.of(bytes(32), b"salt", dim=3)
        >>> rotation.covered(b"face") == rotation.covered(b"face"), rotation.uncovered(rotation.covered(b"face"))
        (False, b'face')
        """
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._masked(content, nonce)

    def uncovered(self, covered: bytes) -> bytes:
        """The content of covered bytes."""
        return self._masked(covered[NONCE_BYTES:], covered[:NONCE_BYTES])

    def _masked(self, content: bytes, nonce: bytes) -> bytes:
        mask = np.frombuffer(hashlib.shake_256(self._secret + nonce).digest(len(content)), np.uint8)
        return (np.frombuffer(content, np.uint8) ^ mask).tobytes()

    def _times(self, X: object, matrix: Float64Array) -> Any:
        try:
            rows: npt.NDArray[Any] = np.asarray(X)
        except ValueError:  # rows of different lengths
            return X
        if rows.ndim != 2 or rows.shape[1] != len(matrix) or rows.dtype.kind not in "fiu":
            return X
        with np.errstate(invalid="ignore", over="ignore"):  # bad rows stay bad, and are named by whoever checks them
            return (rows.astype(np.float64) @ matrix).astype(np.float32)


def protect(store: Store, key: bytes) -> Rotation:
    """Have the samples of a new gallery stored turned by a rotation of its own."""
    salt = secrets.token_bytes(16)
    content = {"method": "rotation", "salt": salt.hex(), "check": _check(key, salt)}
    store.put_artifact(ARTIFACT, json.dumps(content).encode())
    return Rotation.of(key, salt, store.dim)


def turned(X: Float32Array, rotation: Rotation | None) -> Float32Array:
    """Rows as they are stored: turned where there is a rotation."""
    return X if rotation is None else np.asarray(rotation.turned(X), np.float32)


def turned_back(X: Float32Array, rotation: Rotation | None) -> Float32Array:
    """Stored rows as they were given."""
    return X if rotation is None else np.asarray(rotation.turned_back(X), np.float32)


def is_protected(store: Store) -> bool:
    """Whether the samples of a gallery are stored turned."""
    return store.artifact(ARTIFACT) is not None


def rotation_of(store: Store) -> Rotation | None:
    """The rotation of a protected gallery; None where it is not protected."""
    data = store.artifact(ARTIFACT)
    if data is None:
        return None
    content = json.loads(data)
    key, salt = key_in(VARIABLE), bytes.fromhex(content["salt"])
    if not hmac.compare_digest(_check(key, salt), content["check"]):
        raise InvalidParameterError(f"{VARIABLE} holds another key than this gallery is protected with; set that one")
    return Rotation.of(key, salt, store.dim)


def key_in(variable: str) -> bytes:
    """The key in a variable of the environment."""
    text = os.environ.get(variable, "")
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise InvalidParameterError(
            f"a protected gallery needs its key in the environment: {variable} must be {2 * KEY_BYTES} hexadecimal digits, got "
            f"{len(text)} characters; make a key with python -c 'import secrets; print(secrets.token_hex({KEY_BYTES}))'"
        )
    return key


def _check(key: bytes, salt: bytes) -> str:
    return hmac.digest(key, b"holue check" + salt, hashlib.sha256).hex()


class ProtectedStore:
    """A store that turns what is enrolled; all that is read from it stays turned."""

    def __init__(self, store: Store, rotation: Rotation) -> None:
        self._store, self._rotation = store, rotation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def enroll(self, X: object, ids: Iterable[SubjectId], **fields: Any) -> Enrolled:
        """Enrol new subjects, all or nothing."""
        return self._store.enroll(self._rotation.turned(X), ids, **fields)

    def add_samples(self, X: object, ids: Iterable[SubjectId], **fields: Any) -> Enrolled:
        """Give enrolled subjects more samples, all or nothing."""
        return self._store.add_samples(self._rotation.turned(X), ids, **fields)

    def replace(self, X: object, ids: Iterable[SubjectId], **fields: Any) -> Enrolled:
        """Give enrolled subjects new samples in place of all they had."""
        return self._store.replace(self._rotation.turned(X), ids, **fields)


@dataclass(frozen=True, eq=False)
class ProtectedMoment(Moment):
    """A moment of a gallery whose rows are turned: probes are turned before they are compared with them."""

    rotation: Rotation

    def probes(self, X: object, concentration: object = None) -> Embeddings:
        """Probes of as many features as the gallery has."""
        return super().probes(self.rotation.turned(X), concentration)
