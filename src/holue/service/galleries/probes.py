"""Probes: embeddings out of a request's body, whatever form they are sent in.

==============================  ==================================================================================
``application/json``            ``{"probes": [[…], …], "concentration": […]}``, read as float32
``application/x-npy``           one array (n, d) or (d,) as numpy saves it, without pickles
``application/octet-stream``    float32 numbers, little-endian, row after row
``multipart/form-data``         images or recordings; the parts of one name are samples of one probe and are pooled;
                                where faces are looked for, each face of a photograph is a probe; where speech is
                                looked for, the windows of a recording are samples of one
==============================  ==================================================================================

In the binary forms ``?concentration=last`` says that each row ends with its concentration.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from holue.artifact.plain_array import NotPlainError, read_array
from holue.gallery.embeddings import Embeddings, FloatArray
from holue.gallery.pooling import pool
from holue.service.galleries.embedder import Embedder
from holue.service.galleries.sent_files import SentFiles, read_files
from holue.service.http.bodies import read_json
from holue.service.http.problems import ProblemError, of_validation, shown
from holue.service.settings import LimitSettings
from holue.store.values import Float32Array, Float64Array

JSON, NPY, RAW, MULTIPART = "application/json", "application/x-npy", "application/octet-stream", "multipart/form-data"
SPARE = 1024
"""Brackets and commas of a JSON body beside those of its probes."""
MEDIA_TYPES = (JSON, NPY, RAW, MULTIPART)


@dataclass(frozen=True, eq=False)
class Probes:
    """Rows (n, d), and the concentration of each where it is known."""

    rows: FloatArray
    concentration: Float64Array | None = None
    files: SentFiles | None = None  # where they come from, if they came as files
    of_file: tuple[tuple[int, ...], ...] = ()  # for each probe, the rows of ``files`` it is made of

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: slice | list[int]) -> Probes:
        """Some of the probes."""
        kappa = None if self.concentration is None else self.concentration[rows]
        if self.files is None:
            return Probes(self.rows[rows], kappa)
        of_file = self.of_file[rows] if isinstance(rows, slice) else tuple(self.of_file[row] for row in rows)
        return Probes(self.rows[rows], kappa, self.files, of_file)


class ProbeReader:
    """Reads probes for galleries of one dimension, within limits."""

    def __init__(self, limits: LimitSettings, embedder: Embedder | None) -> None:
        self._limits, self._embedder = limits, embedder

    async def read(
        self,
        request: Request,
        dim: int,
        model: str | None,
        schema: type[BaseModel],
        *,
        last: bool = False,
        field: str = "probes",
    ) -> tuple[Probes, BaseModel | None]:
        """The probes of a request and, where it is JSON, the whole body."""
        kind = media_type(request)
        if kind == MULTIPART:
            return await self._embedded(request, dim, model), None
        body = await request.body()
        large = len(body) > 2**18
        if kind == JSON:
            if large:
                self._check_size(body, dim, field)
            parsed = await run_in_threadpool(_validated, body, schema) if large else _validated(body, schema)
            rows, kappa = getattr(parsed, field), getattr(parsed, "concentration", None)
            checked = await run_in_threadpool(self._rows, rows, dim, field) if large else self._rows(rows, dim, field)
            return _sound(Probes(checked, self._concentration(kappa, len(checked)))), parsed
        width = dim + last
        if kind == NPY:
            given = self._from_npy(body, width)
        elif kind == RAW:
            given = self._from_raw(body, width)
        else:
            raise ProblemError(
                415, "unsupported-media-type", f"probes cannot be read from {shown(kind)!r}", field="content-type",
                rule=f"one of {', '.join(MEDIA_TYPES)}", value=kind, way_out="name the body's type in Content-Type",
            )  # fmt: skip
        self._check_number(len(given), field)
        rows = np.ascontiguousarray(given[:, :dim])
        return _sound(Probes(rows, given[:, dim].astype(np.float64) if last else None)), None

    def one(self, embedding: list[float], dim: int, concentration: float | None) -> Probes:
        """A single probe that came as JSON."""
        rows = self._rows([embedding], dim, "probe")
        return _sound(Probes(rows, None if concentration is None else np.array([concentration])))

    def several(self, embeddings: list[list[float]], dim: int, field: str) -> Float32Array:
        """Embeddings that came as JSON, without a limit on their number but the body's."""
        return _array(embeddings, dim, field)

    def _rows(self, given: list[list[float]], dim: int, field: str) -> Float32Array:
        self._check_number(len(given), field)
        return _array(given, dim, field)

    def _concentration(self, given: list[float] | None, n: int) -> Float64Array | None:
        if given is None:
            return None
        if len(given) != n:
            raise ProblemError(
                422, "invalid-concentration", f"there are {len(given)} concentrations for {n} probes",
                field="concentration", rule="one for each probe", value=len(given), way_out="send one for each, or none",
            )  # fmt: skip
        return np.array(given, dtype=np.float64)

    def _from_npy(self, body: bytes, width: int) -> npt.NDArray[Any]:
        try:
            given = read_array(io.BytesIO(body), len(body))
        except NotPlainError as error:
            raise ProblemError(
                422, "invalid-npy", f"the body is not a plain .npy array: {error}", field="body",
                rule="numbers without pickles, as many as the header claims",
                way_out="write it with numpy.save(…, allow_pickle=False)",
            ) from None  # fmt: skip
        if given.ndim == 1:
            given = given[None, :]
        if given.dtype.kind not in "fiu" or given.ndim != 2:
            raise ProblemError(
                422, "invalid-embeddings", f"the array holds {given.dtype} of shape {given.shape}", field="body",
                rule="real numbers of shape (n, d)", value=str(given.shape), way_out="send one row per probe",
            )  # fmt: skip
        if given.shape[1] != width:
            raise _wrong_dimension(width, given.shape[1], "body")
        return given

    def _from_raw(self, body: bytes, width: int) -> Float32Array:
        if not body or len(body) % (4 * width):
            raise ProblemError(
                422, "invalid-embeddings", f"{len(body)} bytes are no whole number of rows of {width} float32 numbers, as "
                "this gallery's embeddings have them", field="body", rule=f"a multiple of {4 * width} bytes", value=len(body),
                way_out=f"send {width} little-endian float32 numbers for each probe",
            )  # fmt: skip
        return np.frombuffer(body, dtype="<f4").reshape(-1, width)

    async def files(self, request: Request, dim: int, model: str | None, *, every_face: bool = False) -> SentFiles:
        """The files of a request, embedded one by one; ``every_face`` of a photograph, or else the one that is meant."""
        embedder = self._embedder
        if media_type(request) != MULTIPART or embedder is None:
            raise ProblemError(
                415, "no-embedder", "files are taken as multipart/form-data, by a service that has an embedder",
                field="content-type", rule=MULTIPART, value=media_type(request),
                way_out="embed with `holue embed` and send embeddings, or set embedder.model in the service's settings",
            )  # fmt: skip
        if model is not None and embedder.model != model:
            raise ProblemError(
                409, "other-model", "the service's embedder is not the model that the gallery was created for",
                field="embedder.model", rule="the gallery's model", value=embedder.model,
                way_out="send embeddings of the gallery's model, or start the service with that model",
            )  # fmt: skip
        sent = await read_files(request, self._limits.probes)
        found = await run_in_threadpool(sent.embedded, embedder, every_face=every_face)
        if found.embedded.rows.shape[1] != dim:
            raise _wrong_dimension(dim, found.embedded.rows.shape[1], "embedder.model")
        return found

    async def _embedded(self, request: Request, dim: int, model: str | None) -> Probes:
        return probes_of(await self.files(request, dim, model, every_face=True))

    def _check_size(self, body: bytes, dim: int, field: str) -> None:
        """Refuse JSON with more arrays or numbers than may be in it, before values are made of them: they take more memory."""
        most = self._limits.probes
        if body.count(b"]") > most + SPARE or body.count(b",") > most * (dim + 2) + SPARE:
            raise ProblemError(
                422, "too-many-probes", f"the body has more than {most} {field}, or more numbers than they can have",
                field=field, rule=f"1 to {most} in one request, of {dim} numbers each",
                way_out="send several requests, or raise limits.probes",
            )  # fmt: skip

    def _check_number(self, n: int, field: str) -> None:
        if not 1 <= n <= self._limits.probes:
            raise ProblemError(
                422, "too-many-probes" if n else "no-probes", f"the request has {n} {field}", field=field,
                rule=f"1 to {self._limits.probes} in one request", value=n,
                way_out="send several requests, or raise limits.probes" if n else "send at least one",
            )  # fmt: skip


def probes_of(sent: SentFiles) -> Probes:
    """The probes in files: the parts of one name are samples of one, and so is each face of any other photograph."""
    rows, kappa = sent.embedded.rows, sent.embedded.concentration
    keys = [sent.key(row) for row in range(len(rows))]
    made_of: dict[tuple[str, int], list[int]] = {}
    for row, key in enumerate(keys):
        made_of.setdefault(key, []).append(row)
    of_file = tuple(map(tuple, made_of.values()))
    if len(of_file) == len(rows):
        return Probes(rows, kappa, sent, of_file)
    order = {key: place for place, key in enumerate(made_of)}
    place = [order[key] for key in keys]
    _, pooled = pool(rows, np.array(place), media=sent.medium, concentration=kappa)
    return Probes(pooled.directions, pooled.concentrations, sent, of_file)


def _array(given: list[list[float]], dim: int, field: str) -> Float32Array:
    for row, numbers in enumerate(given):
        if len(numbers) != dim:
            raise _wrong_dimension(dim, len(numbers), f"{field}.{row}")
    with np.errstate(over="ignore"):  # becomes infinite, and is refused as such
        return np.array(given, dtype=np.float32)


def _sound(probes: Probes) -> Probes:
    """The same probes; an error where a row is zero or not finite, before it joins the probes of others."""
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", probes.rows, probes.rows)
    # A finite positive sum of squares is that of a sound row; what overflows or underflows is looked at more closely.
    if probes.concentration is not None or not all(0.0 < square < np.inf for square in squares.tolist()):
        Embeddings.from_samples(probes.rows, probes.concentration)
    return probes


def media_type(request: Request) -> str:
    """The type of the body, without its parameters; "" where none is named."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _validated(body: bytes, schema: type[BaseModel]) -> BaseModel:
    try:
        return schema.model_validate(read_json(body))
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)[:100]]
        raise of_validation(found) from None


def _wrong_dimension(dim: int, got: int, field: str) -> ProblemError:
    return ProblemError(
        422, "wrong-dimension", f"an embedding has {got} numbers, the gallery's have {dim}", field=field,
        rule=f"{dim} numbers", value=got, way_out="embed with the model that the gallery was created for",
    )  # fmt: skip
