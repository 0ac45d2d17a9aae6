"""Server: the application on a socket, until it is told to stop; what was accepted is finished."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from pathlib import Path
from typing import Literal

import uvicorn

from holue.errors import InvalidParameterError
from holue.service.app import create_app
from holue.service.service import Service
from holue.service.settings import ServiceSettings

FINISH_SECONDS = 30
"""Seconds that requests under way have after SIGTERM."""


def check_binding(settings: ServiceSettings) -> None:
    """Refuse to send faces in the clear: beyond this machine the service needs TLS, or a proxy that ends it.

    >>> check_binding(ServiceSettings(galleries="office", host="0.0.0.0"))
    Traceback (most recent call last):
    ...
    holue.errors.InvalidParameterError: host '0.0.0.0' is not this machine alone, and keys and embeddings would travel in the ...
    """
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise InvalidParameterError("tls_cert and tls_key belong together; give both, or neither")
    for field, file in (("tls_cert", settings.tls_cert), ("tls_key", settings.tls_key)):
        if file is not None and not Path(file).is_file():
            raise InvalidParameterError(f"{field}: {file} is no file; give a PEM file")
    if not _is_loopback(settings.host) and settings.tls_cert is None and settings.proxy is None:
        raise InvalidParameterError(
            f"host {settings.host!r} is not this machine alone, and keys and embeddings would travel in the clear; give "
            'tls_cert and tls_key, or name the proxy that ends TLS with proxy = "ADDRESS"'
        )
    if not settings.keys and not _is_loopback(settings.host):
        raise InvalidParameterError("keys = false is for this machine alone; serve on 127.0.0.1, or switch keys on")


def bind(settings: ServiceSettings) -> socket.socket:
    """A listening socket, so that the address is known before anything else starts."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((settings.host, settings.port))
    except OSError as error:
        sock.close()
        raise InvalidParameterError(
            f"port {settings.port} of {settings.host} cannot be taken ({error.strerror}); choose another one with --port"
        ) from error
    sock.set_inheritable(True)
    return sock


def address_of(settings: ServiceSettings, sock: socket.socket) -> str:
    """The URL of the service."""
    host, port = sock.getsockname()[:2]
    scheme = "http" if settings.tls_cert is None else "https"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def run(service: Service, sock: socket.socket) -> None:
    """Answer requests until SIGTERM or SIGINT; then take no more, finish those under way, and close the galleries."""
    settings = service.settings
    config = uvicorn.Config(
        create_app(service=service, close=True),  # before uvicorn passes the signal on, which ends the process
        http=_protocol(),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=settings.proxy is not None,
        forwarded_allow_ips=settings.proxy,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        timeout_graceful_shutdown=FINISH_SECONDS,
        timeout_keep_alive=30,
        h11_max_incomplete_event_size=64 * 1024,
    )
    uvicorn.Server(config).run(sockets=[sock])


def _protocol() -> type[asyncio.Protocol] | Literal["auto"]:
    """How heads are read: by httptools within our limits, or by h11, which has its own."""
    try:
        from holue.service.http.heads import BoundedHeads
    except ImportError:  # httptools is not installed
        return "auto"
    return BoundedHeads


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
