"""Erasures: subjects go from every file for good, with a receipt."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from starlette.requests import Request

from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.paths import GalleryName
from holue.service.http.problems import ProblemError, not_found
from holue.service.roles import Permission
from holue.service.routes.operations import numbered
from holue.service.schemas.operations import ErasureBody, ErasureDocument, PurgeBody, PurgeDocument, SearchedFile
from holue.service.service import service_of
from holue.store.values import Receipt

router = APIRouter(route_class=StrictRoute, tags=["erasures"])


@router.post("/v1/erasures", status_code=201)
async def erase(
    request: Request, response: Response, asker: Annotated[Asker, allowed(Permission.ERASE)], body: ErasureBody
) -> ErasureDocument:
    """Erase subjects from the gallery, its snapshots, reviews and strangers; nothing brings them back."""
    service = service_of(request)
    asker.require(Permission.ERASE, body.gallery)
    opened = service.galleries.writable(body.gallery)
    if not body.subjects and not body.numbers:
        raise ProblemError(
            422, "nobody-to-erase", "the body names nobody", field="subjects", rule="at least one subject or number",
            way_out="name subjects or numbers",
        )  # fmt: skip

    def work() -> ErasureDocument:
        return _document(opened.name, service.erase(asker, opened, body.subjects, numbers=body.numbers))

    made = await service.long.run(work)
    response.headers["Location"] = f"/v1/erasures/{made.id}"
    return made


@router.post("/v1/galleries/{gallery:segment}/purge")
async def purge(
    request: Request, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.ERASE)], body: PurgeBody
) -> PurgeDocument:
    """Erase the subjects whose `retain_until` has come, or only list them."""
    service = service_of(request)
    opened = service.galleries.get(gallery)

    def work() -> PurgeDocument:
        with opened.changing:  # nobody's time is extended between the list and the erasure
            numbers, _ = opened.live.purge(dry_run=True)
            if body.dry_run or not numbers:
                return PurgeDocument(numbers=numbers, erasure=None)
            receipt = service.erase(asker, opened, numbers=numbers)
        return PurgeDocument(numbers=numbers, erasure=_document(opened.name, receipt))

    return await service.long.run(work)


@router.get("/v1/erasures/{erasure:segment}")
def erasure(
    request: Request,
    erasure: Annotated[str, Path(description="The id of an erasure.", examples=["demo.1"])],
    asker: Annotated[Asker, allowed(Permission.VIEW)],
) -> ErasureDocument:
    """The receipt of an erasure."""
    gallery, number = numbered(erasure, "erasure")
    asker.require(Permission.VIEW, gallery)
    opened = service_of(request).galleries.get(gallery)
    for receipt in opened.live.store.receipts():
        if receipt.number == number:
            return _document(gallery, receipt)
    raise not_found("erasure", erasure, "POST /v1/erasures answers with the id of its receipt")


def _document(gallery: str, receipt: Receipt) -> ErasureDocument:
    return ErasureDocument(
        id=f"{gallery}.{receipt.number}",
        gallery=gallery,
        number=receipt.number,
        version=receipt.version,
        time=receipt.time,
        clean=receipt.clean,
        samples=receipt.samples,
        compared=receipt.compared,
        salt=receipt.salt,
        digests=list(receipt.digests),
        files=[SearchedFile(file=each.file, size=each.size, found=each.found) for each in receipt.files],
        not_searched=list(receipt.not_searched),
    )
