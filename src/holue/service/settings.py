"""Settings: how the service runs, from one TOML file, the environment and options, the later over the earlier."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from holue.errors import InvalidFileError, InvalidParameterError

LINKS = ("http://", "https://", "file:///")
"""How a link to an original may begin; a script is none."""
PREFIX = "HOLUE_SERVICE_"
"""How the names of environment variables begin: ``HOLUE_SERVICE_PORT``, ``HOLUE_SERVICE_LIMITS_BODY_BYTES``."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitSettings(_Table):
    """How much one request may ask for, and all of them together."""

    body_bytes: int = Field(default=64 * 2**20, ge=1024, description="Bytes of a request's body.")
    probes: int = Field(default=4096, ge=1, description="Probes, or samples, in one request.")
    dimension: int = Field(default=8192, ge=1, description="Coordinates of an embedding.")
    top_k: int = Field(default=100, ge=1, description="Candidates of one answer.")
    seconds: float = Field(default=30.0, gt=0, description="Seconds until an identification is given up.")
    upload_seconds: float = Field(default=60.0, gt=0, description="Seconds in which a body has to arrive.")
    waiting_probes: int = Field(default=16_384, ge=1, description="Probes of one gallery that wait for a scan.")
    requests: int = Field(default=1024, ge=1, description="Requests under way at once.")
    pixels: int = Field(default=50_000_000, ge=1, description="Pixels of one image.")
    audio_seconds: float = Field(default=600.0, gt=0, description="Seconds of one recording.")


class EmbedderSettings(_Table):
    """The model that turns images or recordings into embeddings, as ``holue embed`` takes it."""

    model: str = Field(description="A preset (arcface, campplus), an ONNX file with a TOML beside it, or that TOML.")
    head: str | None = Field(
        default=None, description="A head that predicts concentrations, as `holue apply` takes it; none by default."
    )
    detect: str | None = Field(
        default=None,
        description="A face detector (yunet, or its ONNX file): images are whole photographs; without it they are aligned faces. "
        "With a model of speech, a speech detector (silero, or its ONNX file): recordings are cut into windows of speech.",
    )


class ReviewSettings(_Table):
    """Which answers are shown to people."""

    share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the decided answers that is reviewed too, to estimate their error.",
    )
    people: int = Field(default=1, ge=1, le=2, description="How many people have to agree before a review is closed.")


class StrangerSettings(_Table):
    """Whether probes of unknown people are kept."""

    days: float = Field(default=0.0, ge=0, description="Days for which unknown probes are kept; 0 keeps none.")


class ServiceSettings(_Table):
    """Everything that can be set; a key that is not here is an error.

    >>> ServiceSettings(galleries="office").port
    8075
    """

    galleries: str = Field(
        description="A gallery's home, a directory of galleries, or a postgresql:// URL with gallery=NAME."
    )
    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(default=8075, ge=0, le=65535, description="The port to listen on; 0 takes a free one.")
    tls_cert: Path | None = Field(default=None, description="The certificate, a PEM file.")
    tls_key: Path | None = Field(default=None, description="The certificate's key, a PEM file.")
    proxy: str | None = Field(
        default=None,
        description="The address of the proxy that ends TLS in front of the service; its forwarded headers are trusted.",
    )
    keys: bool = Field(default=True, description="Whether requests need a key.")
    damaged: Literal["refuse", "serve"] = Field(
        default="refuse",
        description="What to do with a damaged gallery: not start, or read the rest and answer `incomplete`.",
    )
    cluster: str | None = Field(
        default=None,
        description="A Ray cluster whose shards search the galleries: auto, HOST:PORT, ray://HOST:PORT or local.",
    )
    origin_link: str | None = Field(
        default=None,
        description="Where the originals of samples are found, with {origin} in it: the page links to them. http, https or file.",
    )
    limits: LimitSettings = LimitSettings()
    embedder: EmbedderSettings | None = None
    reviews: ReviewSettings = ReviewSettings()
    strangers: StrangerSettings = StrangerSettings()

    @field_validator("origin_link")
    @classmethod
    def _check_link(cls, link: str | None) -> str | None:
        if link is not None:
            below = link.split("//", 1)[-1].partition("/")[2]
            if not (link.startswith(LINKS) and link.count("{origin}") == 1 and "{origin}" in below):
                raise ValueError(
                    "must begin with http://, https:// or file:///, and hold {origin} once, after the host"
                )
        return link

    @classmethod
    def load(
        cls,
        file: str | Path | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Self:
        """From a TOML file, then the environment, then options; an option that is None says nothing."""
        values = {} if file is None else _read(Path(file))
        for path, text in _from_environment(os.environ if environment is None else environment):
            _put(values, path, text)
        values |= {name: value for name, value in options.items() if value is not None}
        if "galleries" not in values:
            raise InvalidParameterError(
                "galleries is not set: name a gallery, a directory of galleries or a postgresql:// URL with gallery=NAME"
            )
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, first["loc"]))
            known = ", ".join(sorted(".".join(path) for path in _paths(cls)))
            way_out = f"the keys are {known}" if first["type"] == "extra_forbidden" else "correct it"
            where = "the settings" if file is None else str(file)
            raise InvalidParameterError(
                f"{where}: {key}: {first['msg']}, got {first.get('input')!r}; {way_out}"
            ) from error


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidFileError(f"{file}: not a readable TOML file ({error}); correct it or leave it out") from error


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], str]]:
    known = {PREFIX + "_".join(path).upper(): path for path in _paths(ServiceSettings)}
    for name, text in environment.items():
        if not name.startswith(PREFIX):
            continue
        if name not in known:
            raise InvalidParameterError(f"{name} is no setting of the service; there are {', '.join(sorted(known))}")
        yield known[name], text


def _paths(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        tables = [kind for kind in (field.annotation, *getattr(field.annotation, "__args__", ())) if _is_table(kind)]
        if tables:
            yield from ((name, *rest) for rest in _paths(tables[0]))
        else:
            yield (name,)


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _Table)


def _put(values: dict[str, Any], path: tuple[str, ...], text: str) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = text
