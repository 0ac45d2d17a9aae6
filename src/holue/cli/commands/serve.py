"""``holue serve``: a gallery over HTTP."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from holue.cli.output import Json, print_json, say
from holue.errors import InvalidParameterError, MissingDependencyError

DEMO_FOLDER = Path("demo-service")


def serve(
    gallery: Annotated[
        str | None,
        typer.Argument(
            metavar="[GALLERY]", help="A gallery, a directory of galleries, or a postgresql:// URL with gallery=NAME."
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port; default: 8075. 0 takes a free one.", min=0, max=65535)
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings, a TOML file.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="PEM", help="The certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="PEM", help="The certificate's key.")] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Search on a Ray cluster: auto, HOST:PORT, ray://HOST:PORT or local."),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve the glyph world, enrolled and calibrated, from ./demo-service.")
    ] = False,
    json: Json = False,
) -> None:
    """Serve a gallery over HTTP: identify, enrol, review. Prints the address and, at the first start, the first key.

    The API is described at `/openapi.json`. The service listens on this machine alone; elsewhere it needs a certificate, or a
    proxy named in the settings. Logs go to standard error, a line of JSON each. Example: `holue serve office --port 8075`
    """
    try:
        from holue.service.http.logs import log_as_json
        from holue.service.server import address_of, bind, check_binding, run
        from holue.service.service import Service
        from holue.service.settings import ServiceSettings
    except ModuleNotFoundError as error:
        raise MissingDependencyError(str(error.name), "serve") from error
    if demo and gallery is not None:
        raise InvalidParameterError("--demo serves its own gallery; leave out GALLERY")
    options: dict[str, Any] = {"host": host, "port": port, "tls_cert": tls_cert, "tls_key": tls_key, "cluster": cluster}
    settings = ServiceSettings.load(config, galleries=str(DEMO_FOLDER) if demo else gallery, **options)
    check_binding(settings)
    sock = bind(settings)
    embedder = None
    if demo:
        from holue.service.demo import glyph_files, make_demo_gallery, playing, queue_examples

        make_demo_gallery(DEMO_FOLDER)
        embedder = glyph_files(settings.limits)
    service = Service(settings, embedder=embedder).open()
    if demo:
        service.try_it = playing(service)
        queue_examples(service)
    first = None if service.first_key is None else service.first_key.text
    address = address_of(settings, sock)
    if json:
        print_json({"address": address, "first_key": first, "galleries": [each.name for each in service.galleries]})
    else:
        say(f"holue serves {', '.join(each.name for each in service.galleries) or 'no gallery yet'} at {address}")
        if first is not None:
            say(f"first key (an admin's; shown once): {first}")
        say(f"open {address} in a browser and sign in with a key")
        say(f"the API is described at {address}/openapi.json; Ctrl-C stops the service")
    log_as_json(logging.INFO)
    warnings.filterwarnings("ignore", module="holue")  # doubts are part of answers, metrics and the gallery's document
    run(service, sock)
