"""Access: whose key a request carries, and whether it allows what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer

from holue.errors import InvalidKeyError
from holue.service.http.problems import CHALLENGE, ProblemError
from holue.service.http.together import Together
from holue.service.ledger.keys import Key, Keys
from holue.service.roles import Permission
from holue.service.wrong_keys import WrongKeys

_HEADER = APIKeyHeader(name="x-api-key", auto_error=False, description="A key of the service.")
_BEARER = HTTPBearer(auto_error=False, description="The same key, as `Authorization: Bearer KEY`.")
NOBODY = "-/keys off"


@dataclass(frozen=True)
class Asker:
    """Who asks; without a key everything is allowed, which is so only where keys are switched off."""

    key: Key | None

    @property
    def actor(self) -> str:
        """How the log names them."""
        return NOBODY if self.key is None else self.key.actor

    def require(self, permission: Permission, gallery: str | None) -> None:
        """An error where the key does not allow something in a gallery; None is the service as a whole."""
        if self.key is not None:
            self.key.require(permission, gallery)

    def may_see(self, gallery: str) -> bool:
        """Whether a gallery is the key's own, or the key is for all of them."""
        return self.key is None or self.key.gallery in (None, gallery)


class Access:
    """Checks keys; an address that sends wrong ones has to wait."""

    def __init__(self, keys: Keys | None) -> None:
        self.keys = keys
        self.wrong = WrongKeys()
        self._checking = Together(self._check_all, "keys")

    async def asker(self, request: Request, permission: Permission) -> Asker:
        """Who sends a request, once their key allows it; the gallery is the one in the path, where there is one.

        Keys are read anew after the request has come. Requests that wait for that at the same time read each key once.
        """
        if self.keys is None:
            return Asker(None)
        if not self.keys.on_server:  # reading the key from a file takes less time than a thread switch
            return self._check(request, permission, {})
        return await self._checking.submit((request, permission))

    def close(self) -> None:
        """End the thread that reads keys."""
        self._checking.close()

    def _check_all(self, asked: list[tuple[Request, Permission]]) -> list[Asker | Exception]:
        read: dict[str, Key | InvalidKeyError] = {}
        found: list[Asker | Exception] = []
        for request, permission in asked:
            try:
                found.append(self._check(request, permission, read))
            except Exception as error:
                found.append(error)
        return found

    def _check(self, request: Request, permission: Permission, read: dict[str, Key | InvalidKeyError]) -> Asker:
        address = request.client.host if request.client else "unknown"
        text = _text(request)
        if text is None:
            raise ProblemError(
                401, "no-key", "the request carries no key", field="x-api-key", rule="a valid key",
                way_out="send the key in the header x-api-key, or as Authorization: Bearer",
                headers={"WWW-Authenticate": CHALLENGE},
            )  # fmt: skip
        self.wrong.check(address)
        if text not in read:
            read[text] = self._read(text)
        key = read[text]
        if isinstance(key, InvalidKeyError):
            self.wrong.note(address)
            raise key
        asker = Asker(key)
        if "gallery" in request.path_params:
            asker.require(permission, request.path_params["gallery"])
        else:
            key.role.require(permission)
        return asker

    def _read(self, text: str) -> Key | InvalidKeyError:
        assert self.keys is not None
        try:
            return self.keys.check(text)
        except InvalidKeyError as error:
            return error


def _text(request: Request) -> str | None:
    given = request.headers.get("x-api-key")
    if given is not None:
        return given
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.strip() else None


def allowed(permission: Permission) -> Any:
    """The dependency that gives a route its asker, who needs this permission.

    The check itself runs before the body is read: see :class:`holue.service.http.bodies.StrictRoute`.
    """

    async def asker(
        request: Request, header: Annotated[Any, Security(_HEADER)], bearer: Annotated[Any, Security(_BEARER)]
    ) -> Asker:
        found: Asker = request.state.asker
        return found

    asker.permission = permission  # type: ignore[attr-defined]
    return Depends(asker)


def permission_of(route: Any) -> Permission | None:
    """What a route needs; None where anybody may ask."""
    for dependency in route.dependant.dependencies:
        found = getattr(dependency.call, "permission", None)
        if isinstance(found, Permission):
            return found
    return None
