"""Calibrations: made beside the one that answers, previewed, and switched over."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Response
from starlette.requests import Request

from holue.gallery.subjects import UNKNOWN
from holue.live.calibration.calibrations import CalibrationEntry
from holue.service.calibration import calibrate_from_reviews, certify_from_reviews, preview_on_reviews
from holue.service.galleries.opened import Opened
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.http.etags import IfMatch, check_tag, tag_of
from holue.service.http.paths import GalleryName
from holue.service.http.problems import ProblemError, not_found
from holue.service.roles import Permission
from holue.service.schemas.calibrations import (
    CalibrationBody,
    CalibrationDocument,
    CalibrationsDocument,
    CertificateDocument,
    CertifyBody,
    LabelledProbes,
    OtherGallery,
    PreviewDocument,
    RatesDocument,
)
from holue.service.schemas.galleries import FpirDocument
from holue.service.service import Service, service_of

router = APIRouter(route_class=StrictRoute, tags=["calibrations"])

BASE = "/v1/galleries/{gallery:segment}/calibrations"
Number = Annotated[int, Path(ge=1, lt=2**63, description="The number of a calibration.", examples=[1])]
Viewer = Annotated[Asker, allowed(Permission.VIEW)]
Calibrator = Annotated[Asker, allowed(Permission.CALIBRATE)]
Activator = Annotated[Asker, allowed(Permission.ACTIVATE)]


@router.get(BASE)
def calibrations(
    request: Request,
    response: Response,
    gallery: GalleryName,
    asker: Viewer,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> CalibrationsDocument:
    """Calibrations of a gallery, a page at a time, each with its state and whether it fits the gallery as it is now."""
    opened = service_of(request).galleries.get(gallery)
    entries = opened.live.calibrations()
    response.headers["ETag"] = _tag(entries)
    found, following = cursors.page(entries, cursor, limit, lambda entry: (entry.number,))
    return CalibrationsDocument(calibrations=[calibration_document(opened, entry) for entry in found], next=following)


@router.get(BASE + "/{number}")
def calibration(request: Request, gallery: GalleryName, number: Number, asker: Viewer) -> CalibrationDocument:
    """One calibration."""
    opened = service_of(request).galleries.get(gallery)
    return calibration_document(opened, _entry(opened, number))


@router.post(BASE, status_code=201)
async def make_candidate(
    request: Request, response: Response, gallery: GalleryName, asker: Calibrator, body: CalibrationBody
) -> CalibrationDocument:
    """Make a calibration that answers nothing until it is activated."""
    made = await _calibrated(request, gallery, asker, body, activate=False)
    response.headers["Location"] = f"{request.url.path}/{made.number}"
    return made


@router.post("/v1/galleries/{gallery:segment}/calibrate", status_code=201)
async def calibrate(
    request: Request, gallery: GalleryName, asker: Activator, body: CalibrationBody
) -> CalibrationDocument:
    """Make a calibration that answers at once."""
    return await _calibrated(request, gallery, asker, body, activate=True)


@router.post(BASE + "/{number}/preview")
async def preview(
    request: Request, gallery: GalleryName, number: Number, asker: Calibrator, body: LabelledProbes
) -> PreviewDocument:
    """What would change if a calibration answered: on the enrolled samples, on probes, or on what people decided."""
    service = service_of(request)
    opened = service.galleries.get(gallery)
    _entry(opened, number)
    probes = _probes(service, opened, body)

    def work() -> PreviewDocument:
        if body.source == "reviews":
            found = preview_on_reviews(opened.live, opened.ledger, number)
        else:
            found = opened.live.preview(number, *probes)
        return PreviewDocument(
            **{
                **vars(found),
                "rates": None if found.rates is None else RatesDocument(**vars(found.rates)),
                "active_rates": None if found.active_rates is None else RatesDocument(**vars(found.active_rates)),
                "differ": found.differ.tolist(),
                "doubts": [str(doubt) for doubt in found.doubts],
            }
        )

    return await service.long.run(work)


@router.post(BASE + "/{number}/certify", status_code=201)
async def certify(
    request: Request, response: Response, gallery: GalleryName, number: Number, asker: Calibrator, body: CertifyBody
) -> CalibrationDocument:
    """Certify a risk of a calibration: a candidate like it, whose answers keep to the target once it is activated.

    Where the labelled probes do not certify the target the problem says how many more are needed.
    """
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    _entry(opened, number)
    rows, subjects, kappa = _probes(service, opened, body)
    wanted: dict[str, Any] = {
        "risk": body.risk, "target_level": body.target, "confidence_level": body.confidence, "unit": body.unit,
    }  # fmt: skip
    if body.source == "probes":
        if body.people is not None and len(body.people) != len(rows):
            raise _uneven("people", len(body.people), len(rows))
        wanted |= {"subject": body.people, "gallery": _other(service, opened, body.gallery)}

    def work() -> CalibrationDocument:
        if body.source == "reviews":
            entry = certify_from_reviews(opened.live, opened.ledger, number, by=asker.actor, **wanted)
        else:
            entry = opened.live.certify(number, rows, subjects, kappa, by=asker.actor, **wanted)
        service.record(
            asker, "certify", started, opened, gallery_version=opened.live.version, calibration=number,
            item=entry.number,
        )  # fmt: skip
        return calibration_document(opened, entry)

    made = await service.long.run(work)
    response.headers["Location"] = f"{request.url.path.removesuffix(f'{number}/certify')}{made.number}"
    return made


@router.post(BASE + "/{number}/activate")
def activate(
    request: Request,
    response: Response,
    gallery: GalleryName,
    number: Number,
    asker: Activator,
    if_match: IfMatch = None,
) -> CalibrationDocument:
    """From now on this calibration answers: a candidate, or one that has answered before.

    Where another one was chosen at the same moment the problem is 409; with the ETag of the list in `If-Match`, 412 where
    anything was made or chosen since.
    """
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    with opened.changing:
        check_tag(_tag(opened.live.calibrations()), if_match, "the calibrations are")
        _entry(opened, number)
        opened.live.activate(number, by=asker.actor)
    service.record(
        asker, "activate", started, opened, gallery_version=opened.live.version, calibration=number, item=number
    )
    response.headers["ETag"] = _tag(opened.live.calibrations())
    return calibration_document(opened, _entry(opened, number))


async def _calibrated(
    request: Request, gallery: str, asker: Asker, body: CalibrationBody, *, activate: bool
) -> CalibrationDocument:
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    probes = _probes(service, opened, body)
    others = _other(service, opened, body.gallery)

    def work() -> CalibrationDocument:
        if body.source == "reviews":
            entry = calibrate_from_reviews(opened.live, opened.ledger, activate=activate, by=asker.actor)
        else:
            entry = opened.live.calibrate(*probes, gallery=others, activate=activate, by=asker.actor)
        service.record(
            asker, "calibrate", started, opened, gallery_version=entry.made_at, calibration=entry.number,
            item=entry.number,
        )  # fmt: skip
        return calibration_document(opened, entry)

    return await service.long.run(work)


def calibration_document(opened: Opened, entry: CalibrationEntry) -> CalibrationDocument:
    """A calibration beside the gallery as it is now."""
    version = opened.live.calibrated_with(entry.number)
    point = None if version.state is None else version.state.operating_point
    certificate = None if version.state is None else version.state.certificate
    doubts = [str(doubt) for doubt in version.doubts()]
    expected = None if point is None else point.fpir_interval
    return CalibrationDocument(
        number=entry.number, state=entry.state, source=entry.source, made_at=entry.made_at, since=entry.since,
        time=entry.time, model=entry.model, threshold=None if point is None else point.threshold,
        target_fpir=None if point is None else point.target_fpir,
        expected_fpir=None if expected is None else FpirDocument(**vars(expected)),
        shortfall=None if point is None else point.shortfall, fits=point is not None and not doubts, doubts=doubts,
        certificate=None if certificate is None else CertificateDocument(**certificate.to_dict()),
    )  # fmt: skip


def _tag(entries: list[CalibrationEntry]) -> str:
    return tag_of([vars(entry) for entry in entries])


def _other(service: Service, opened: Opened, given: OtherGallery | None) -> tuple[object, ...] | None:
    """A gallery of other people, as the living gallery takes it."""
    if given is None:
        return None
    rows = service.reader.several(given.embeddings, opened.live.dim, "gallery.embeddings")
    if len(rows) != len(given.subjects):
        raise _uneven("gallery.subjects", len(given.subjects), len(rows))
    return rows, given.subjects


def _entry(opened: Opened, number: int) -> CalibrationEntry:
    for entry in opened.live.calibrations():
        if entry.number == number:
            return entry
    raise not_found("calibration", number, "calibrations are listed by GET …/calibrations")


def _probes(service: Service, opened: Opened, body: LabelledProbes) -> tuple[Any, Any, Any]:
    """X, y and κ as the living gallery takes them."""
    if (body.source == "probes") != (body.probes is not None):
        raise ProblemError(
            422, "invalid-source", f"source {body.source!r} does not fit the body", field="source",
            rule="probes are given with the source probes, and with no other", value=body.source,
            way_out="give probes and subjects with source probes, or leave them out",
        )  # fmt: skip
    if body.probes is None:
        return None, None, None
    rows = service.reader.several(body.probes, opened.live.dim, "probes")
    for field, given in (("subjects", body.subjects), ("concentration", body.concentration)):
        if given is not None and len(given) != len(rows):
            raise _uneven(field, len(given), len(rows))
    subjects = None
    if body.subjects is not None:
        subjects = np.empty(len(rows), object)
        subjects[:] = [UNKNOWN if subject is None else subject for subject in body.subjects]
    return rows, subjects, body.concentration


def _uneven(field: str, got: int, wanted: int) -> ProblemError:
    return ProblemError(
        422, "uneven", f"{field} has {got} entries for {wanted} probes", field=field, rule="one for each probe",
        value=got, way_out="send one for each",
    )  # fmt: skip
