"""Client: a gallery over HTTP, blocking or asynchronous, with the verbs of an open gallery.

Both clients send the same calls (``calls.py``); only the sending differs. A call that can be repeated is sent again after a lost
connection or a 503, at most ``RETRIES`` times.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from holue.client.call import Call
from holue.client.calls import Calls, Page
from holue.client.problems import ServiceError, error_of
from holue.errors import InvalidKeyError, MissingDependencyError, StoreUnavailableError
from holue.store.values import Subject

if TYPE_CHECKING:
    import httpx

P = ParamSpec("P")
T = TypeVar("T")
RETRIES = 3
LONGEST_WAIT = 5.0
SECONDS = 60.0


def _blocking(build: Callable[Concatenate[Calls, P], Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """The verb that sends what ``build`` makes, and waits for the answer."""

    @wraps(build)
    def verb(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(build(self._calls, *args, **kwargs))

    return verb


def _awaiting(build: Callable[Concatenate[Calls, P], Call[T]]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """The verb that sends what ``build`` makes, to be awaited."""

    @wraps(build)
    async def verb(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(build(self._calls, *args, **kwargs))

    return verb


def _blocking_all(
    build: Callable[Concatenate[Calls, P], Call[Page]],
) -> Callable[Concatenate[Client, P], list[dict[str, Any]]]:
    """The verb that reads every page of a list."""

    @wraps(build)
    def verb(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> list[dict[str, Any]]:
        call = build(self._calls, *args, **kwargs)
        found, cursor = self.send(call)
        while cursor is not None:
            more, cursor = self.send(call.after(cursor))
            found += more
        return found

    return verb


def _awaiting_all(
    build: Callable[Concatenate[Calls, P], Call[Page]],
) -> Callable[Concatenate[AsyncClient, P], Awaitable[list[dict[str, Any]]]]:
    """The verb that reads every page of a list, to be awaited."""

    @wraps(build)
    async def verb(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> list[dict[str, Any]]:
        call = build(self._calls, *args, **kwargs)
        found, cursor = await self.send(call)
        while cursor is not None:
            more, cursor = await self.send(call.after(cursor))
            found += more
        return found

    return verb


class Client:
    """A gallery of a service. ``address`` is the service's, ``transport`` replaces the network in tests.

    >>> client = Client("http://127.0.0.1:8075", key="hk_0123456789ab_secret", gallery="demo")
    >>> client
    Client('http://127.0.0.1:8075', gallery='demo')
    >>> client.close()
    """

    def __init__(
        self, address: str, *, key: str | None, gallery: str, timeout: float = SECONDS, transport: Any = None
    ) -> None:
        self._calls, self._name = Calls(gallery), (address, gallery)
        self._http = _httpx().Client(
            base_url=address, headers=_headers(key), timeout=timeout, transport=transport, follow_redirects=False
        )

    def __repr__(self) -> str:
        return f"Client({self._name[0]!r}, gallery={self._name[1]!r})"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, call: Call[T]) -> T:
        """Send a call and read its answer; what the service refuses is raised as the error it is."""
        for attempt in range(RETRIES + 1):
            try:
                reply = self._http.request(**_request(call))
            except _httpx().TransportError as error:
                wait = _wait(call, attempt, None)
                if wait is None:
                    raise _unreachable(self._name[0], error) from error
            else:
                wait = _wait(call, attempt, reply)
                if wait is None:
                    return _read(call, reply)
            time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def all_subjects(self) -> Iterator[Subject]:
        """Every enrolled subject, page after page."""
        cursor: str | None = None
        while True:
            found, cursor = self.subjects(cursor, 1000)
            yield from found
            if cursor is None:
                return

    status = _blocking(Calls.status)
    subjects = _blocking(Calls.subjects)
    subject = _blocking(Calls.subject)
    samples = _blocking_all(Calls.samples)
    changes = _blocking(Calls.changes)
    identify = _blocking(Calls.identify)
    identify_documents = _blocking(Calls.identify_documents)
    identify_files = _blocking(Calls.identify_files)
    verify = _blocking(Calls.verify)
    enroll = _blocking(Calls.enroll)
    add_samples = _blocking(Calls.add_samples)
    enroll_files = _blocking(Calls.enroll_files)
    replace = _blocking(Calls.replace)
    remove = _blocking(Calls.remove)
    remove_sample = _blocking(Calls.remove_sample)
    rename = _blocking(Calls.rename)
    update = _blocking(Calls.update)
    merge = _blocking(Calls.merge)
    split = _blocking(Calls.split)
    undo = _blocking(Calls.undo)
    erase = _blocking(Calls.erase)
    purge = _blocking(Calls.purge)
    change_settings = _blocking(Calls.change_settings)
    calibrate = _blocking(Calls.calibrate)
    calibrations = _blocking_all(Calls.calibrations)
    preview = _blocking(Calls.preview)
    expected_errors = _blocking(Calls.expected_errors)
    certify = _blocking(Calls.certify)
    activate = _blocking(Calls.activate)
    audit = _blocking(Calls.audit)
    snapshot = _blocking(Calls.snapshot)
    snapshots = _blocking_all(Calls.snapshots)


class AsyncClient:
    """The same for asyncio: every verb is awaited."""

    def __init__(
        self, address: str, *, key: str | None, gallery: str, timeout: float = SECONDS, transport: Any = None
    ) -> None:
        self._calls, self._name = Calls(gallery), (address, gallery)
        self._http = _httpx().AsyncClient(
            base_url=address, headers=_headers(key), timeout=timeout, transport=transport, follow_redirects=False
        )

    def __repr__(self) -> str:
        return f"AsyncClient({self._name[0]!r}, gallery={self._name[1]!r})"

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def send(self, call: Call[T]) -> T:
        """Send a call and read its answer; what the service refuses is raised as the error it is."""
        for attempt in range(RETRIES + 1):
            try:
                reply = await self._http.request(**_request(call))
            except _httpx().TransportError as error:
                wait = _wait(call, attempt, None)
                if wait is None:
                    raise _unreachable(self._name[0], error) from error
            else:
                wait = _wait(call, attempt, reply)
                if wait is None:
                    return _read(call, reply)
            await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def all_subjects(self) -> AsyncIterator[Subject]:
        """Every enrolled subject, page after page."""
        cursor: str | None = None
        while True:
            found, cursor = await self.subjects(cursor, 1000)
            for subject in found:
                yield subject
            if cursor is None:
                return

    status = _awaiting(Calls.status)
    subjects = _awaiting(Calls.subjects)
    subject = _awaiting(Calls.subject)
    samples = _awaiting_all(Calls.samples)
    changes = _awaiting(Calls.changes)
    identify = _awaiting(Calls.identify)
    identify_documents = _awaiting(Calls.identify_documents)
    identify_files = _awaiting(Calls.identify_files)
    verify = _awaiting(Calls.verify)
    enroll = _awaiting(Calls.enroll)
    add_samples = _awaiting(Calls.add_samples)
    enroll_files = _awaiting(Calls.enroll_files)
    replace = _awaiting(Calls.replace)
    remove = _awaiting(Calls.remove)
    remove_sample = _awaiting(Calls.remove_sample)
    rename = _awaiting(Calls.rename)
    update = _awaiting(Calls.update)
    merge = _awaiting(Calls.merge)
    split = _awaiting(Calls.split)
    undo = _awaiting(Calls.undo)
    erase = _awaiting(Calls.erase)
    purge = _awaiting(Calls.purge)
    change_settings = _awaiting(Calls.change_settings)
    calibrate = _awaiting(Calls.calibrate)
    calibrations = _awaiting_all(Calls.calibrations)
    preview = _awaiting(Calls.preview)
    expected_errors = _awaiting(Calls.expected_errors)
    certify = _awaiting(Calls.certify)
    activate = _awaiting(Calls.activate)
    audit = _awaiting(Calls.audit)
    snapshot = _awaiting(Calls.snapshot)
    snapshots = _awaiting_all(Calls.snapshots)


def _httpx() -> Any:
    try:
        import httpx
    except ImportError as error:
        raise MissingDependencyError("httpx", "client") from error
    return httpx


def _headers(key: str | None) -> dict[str, str]:
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InvalidKeyError("key must be printable ASCII, as the service shows it; copy it again")
    return {} if key is None else {"x-api-key": key}


def _request(call: Call[Any]) -> dict[str, Any]:
    return {
        "method": call.method, "url": call.path, "params": dict(call.params), "headers": dict(call.headers),
        **({"content": call.content} if call.content is not None else {"json": call.json} if call.json is not None else {}),
    }  # fmt: skip


def _wait(call: Call[Any], attempt: int, reply: httpx.Response | None) -> float | None:
    """Seconds until the call is sent again; None where it is not, or has been answered."""
    asks_to_wait = reply is not None and reply.status_code in (429, 503)
    # A refused identification changed nothing, so it can be sent again too.
    harmless = call.repeatable or (reply is not None and call.path.endswith(("/identify", "/verify")))
    if attempt == RETRIES or not harmless or (reply is not None and not asks_to_wait):
        return None
    told = None if reply is None else reply.headers.get("retry-after")
    wait = float(told) if told is not None and told.isdecimal() else 0.1 * 2**attempt
    return min(wait, LONGEST_WAIT)


def _read(call: Call[T], reply: httpx.Response) -> T:
    if reply.is_success:
        return call.read(reply.json())
    try:
        document = reply.json()
    except ValueError:
        document = {}
    if not isinstance(document, dict):
        document = {}
    raise error_of(reply.status_code, document)


def _unreachable(address: str, error: Exception) -> Exception:
    return StoreUnavailableError(f"the service at {address} cannot be reached ({error}); is it running there?")


__all__ = ["AsyncClient", "Client", "ServiceError"]
