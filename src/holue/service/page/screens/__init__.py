"""Screens: which there are, and which of them a visitor sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.requests import Request

from holue.service.roles import Permission
from holue.service.service import service_of

if TYPE_CHECKING:
    from holue.service.page.visitor import Visitor


@dataclass(frozen=True)
class Screen:
    """An entry of the navigation."""

    name: str
    address: str


OF_A_GALLERY = (
    ("Identify", "identify", Permission.IDENTIFY),
    ("Review", "review", Permission.REVIEW),
    ("Subjects", "subjects", Permission.VIEW),
    ("Audit", "audit", Permission.AUDIT),
    ("Calibration", "calibration", Permission.VIEW),
    ("Log", "log", Permission.READ_LOG),
)
"""Name, last part of the address, and what it needs."""


def address_of(gallery: str, *parts: object) -> str:
    """The address of a screen of a gallery."""
    return "/".join(["", "galleries", *(quote(str(part), safe="") for part in (gallery, *parts))])


def screens_for(request: Request, visitor: Visitor, gallery: str | None) -> list[Screen]:
    """The screens that a visitor may open, about this gallery or else the first that they may see."""
    service = service_of(request)
    names = [each.name for each in service.galleries if visitor.asker.may_see(each.name)]
    chosen = gallery if gallery is not None else (names[0] if names else None)
    found = []
    if service.try_it is not None and visitor.may(Permission.IDENTIFY, service.try_it.gallery):
        found.append(Screen("Try it", "/try"))
    if len(names) > 1:
        found.append(Screen("Galleries", "/galleries"))
    if chosen is not None:
        found += [
            Screen(name, address_of(chosen, part))
            for name, part, permission in OF_A_GALLERY
            if visitor.may(permission, chosen)
        ]
        on_cluster = any(each.name == chosen and each.live.clustered is not None for each in service.galleries)
        if on_cluster and visitor.may(Permission.VIEW, chosen):
            found.append(Screen("Cluster", address_of(chosen, "cluster")))
    if visitor.may(Permission.MANAGE_KEYS, None):
        found.append(Screen("Keys", "/keys"))
    return found
