"""Calibration: the operating point, what is promised and whether it holds, and new calibrations beside the old one."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from holue.errors import HolueError, InvalidParameterError
from holue.live.calibration.calibrations import CalibrationEntry
from holue.live.calibration.expected_errors import ExpectedErrors, Rate
from holue.live.calibration.preview import CalibrationPreview, Rates
from holue.service.calibration import calibrate_from_reviews
from holue.service.galleries.answers import risk_of
from holue.service.galleries.opened import Opened
from holue.service.http.paths import GalleryName
from holue.service.page.curve import Curve
from holue.service.page.rendering import Message, moment, redirect, render
from holue.service.page.screens import address_of
from holue.service.page.screens.review import found_so_far, promise_check
from holue.service.page.visitor import PageRoute, Visiting, Visitor
from holue.service.roles import Permission
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
BASE = "/galleries/{gallery:segment}/calibration"
SOURCES = {"probes": "labelled probes", "leave-one-out": "the gallery itself", "reviews": "what reviewers decided"}


@router.get(BASE)
def calibration(request: Request, visitor: Visiting, gallery: GalleryName) -> Response:
    """The calibration that answers now, and all others."""
    visitor.asker.require(Permission.VIEW, gallery)
    return _screen(request, visitor, service_of(request).galleries.get(gallery))


@router.post(BASE + "/measure")
async def measure(request: Request, visitor: Visiting, gallery: GalleryName) -> Response:
    """Ask about the enrolled samples, each left out in turn."""
    visitor.asker.require(Permission.VIEW, gallery)
    opened = service_of(request).galleries.get(gallery)

    def work() -> None:
        opened.expected = opened.live.expected_errors()

    return await _long(request, opened, work, None)


@router.post(BASE + "/new")
async def new(
    request: Request, visitor: Visiting, gallery: GalleryName, source: Annotated[str, Form(max_length=20)]
) -> Response:
    """A candidate, made beside the calibration that answers."""
    visitor.asker.require(Permission.CALIBRATE, gallery)
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    if source not in ("leave-one-out", "reviews"):
        raise InvalidParameterError(f"source must be leave-one-out or reviews, got {source!r}")

    def work() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fallback is part of the calibration's state
            made = _candidate(opened, source, visitor.asker.actor)
        service.record(visitor.asker, "calibrate", started, opened, item=made.number, gallery_version=made.made_at)

    return await _long(
        request, opened, work, Message("A new calibration was made. Look at what it would change, then let it answer.")
    )


@router.get(BASE + "/{number:int}")
async def preview(request: Request, visitor: Visiting, gallery: GalleryName, number: int) -> Response:
    """What would change if another calibration answered."""
    visitor.asker.require(Permission.CALIBRATE, gallery)
    service = service_of(request)
    opened = service.galleries.get(gallery)
    found = await service.long.run(lambda: opened.live.preview(number))
    return _screen(request, visitor, opened, found)


@router.post(BASE + "/{number:int}/activate")
def activate(request: Request, visitor: Visiting, gallery: GalleryName, number: int) -> Response:
    """From now on this calibration answers."""
    visitor.asker.require(Permission.ACTIVATE, gallery)
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    before = opened.live.current.calibration
    opened.live.activate(number, by=visitor.asker.actor)
    service.record(visitor.asker, "activate-calibration", started, opened, item=number)
    here = address_of(gallery, "calibration")
    undo = None if before is None or before == number else f"{here}/{before}/activate"
    return redirect(here, Message(f"Calibration {number} answers now.", undo=undo))


@router.post(BASE + "/filter")
def set_filter(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    kept: Annotated[int | None, Form(ge=0)] = None,
    below: Annotated[str, Form(max_length=40)] = "",
) -> Response:
    """Filter the answers that the handle leaves out, or those below a quality; "none" is the certified filter, or no filter."""
    visitor.asker.require(Permission.MANAGE_GALLERIES, gallery)
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    with opened.changing:
        expected, before = opened.expected, opened.live.settings.filter_below
        if kept is not None:
            if expected is None:
                raise InvalidParameterError("no errors were measured yet; measure what errors to expect first")
            points = Curve.of(expected).points
            chosen: float | None = points[min(kept, len(points) - 1)].filter
        else:
            chosen = _filter_value(below)
        opened.live.change_settings(by=visitor.asker.actor, filter_below=chosen)
    service.record(visitor.asker, "change-settings", started, opened, gallery_version=opened.live.version)
    here = address_of(gallery, "calibration")
    text = f"{_filter_told(opened, chosen)} Before: {_filter_told(opened, before)}"
    return redirect(
        here, Message(text, undo=f"{here}/filter", fields=[("below", "none" if before is None else repr(before))])
    )


def _filter_value(text: str) -> float | None:
    if text == "none":
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidParameterError(f"below must be a number, or none, got {text!r}")
    return value


def _kept_now(opened: Opened, expected: ExpectedErrors) -> float:
    """The share of the measured answers that the filter of now keeps."""
    state = opened.live.current.state
    below = -math.inf if state is None else state.filter_threshold(opened.live.settings.filter_below)
    return expected.filtered_below(below).answers / len(expected)


def _filter_told(opened: Opened, set_by_hand: float | None) -> str:
    """What a filter does, measured on the enrolled samples where that was done."""
    state, expected = opened.live.current.state, opened.expected
    below = -math.inf if state is None else state.filter_threshold(set_by_hand)
    if not math.isfinite(below):
        said = "No answer is filtered"
    else:
        said = f"Answers of quality below {below:.3f} are filtered"
    if expected is None or not len(expected):
        return f"{said}."
    kept = expected.filtered_below(below)
    share = 1 - kept.answers / len(expected)
    errors = (
        "no answer is left"
        if kept.share is None
        else f"{kept.share:.1%} errors among the rest ({kept.lower:.1%} to {kept.upper:.1%})"
    )
    return f"{said}: {share:.0%} of them, and {errors}."


async def _long(request: Request, opened: Opened, work: Callable[[], None], done: Message | None) -> Response:
    """Run long work; what it cannot do is told on the screen."""
    try:
        await service_of(request).long.run(work)
    except HolueError as error:
        done = Message(str(error), "bad")
    return redirect(address_of(opened.name, "calibration"), done)


def _candidate(opened: Opened, source: str, actor: str) -> CalibrationEntry:
    if source == "leave-one-out":
        return opened.live.calibrate(activate=False, by=actor)
    return calibrate_from_reviews(opened.live, opened.ledger, by=actor)


def _screen(request: Request, visitor: Visitor, opened: Opened, preview: CalibrationPreview | None = None) -> Response:
    gallery, current = opened.name, opened.live.current
    point = None if current.state is None else current.state.operating_point
    expected = opened.expected
    curve = None if expected is None or not len(expected) else Curve.of(expected)
    return render(
        request, "calibration.html.jinja", visitor, title="Calibration", gallery=gallery,
        here=address_of(gallery, "calibration"), risk=risk_of(current),
        threshold=None if point is None else point.threshold,
        expected=None if expected is None or curve is None else {
            "fpir": _rate(expected.fpir), "fnir": _rate(expected.fnir),
            "old": expected.version != current.version or expected.calibration != current.calibration,
            "same_samples": expected.source == "leave-one-out",
            "broken": point is not None and point.target_fpir is not None and expected.fpir.lower > point.target_fpir,
        },
        curve=curve, points=None if curve is None else json.dumps([vars(point) for point in curve.points]),
        handle_at=None if expected is None or curve is None else curve.nearest(_kept_now(opened, expected)),
        found=found_so_far(promise_check(opened)), filter_now=_filter_told(opened, opened.live.settings.filter_below),
        may_filter=visitor.may(Permission.MANAGE_GALLERIES, gallery),
        calibrations=[_row(gallery, entry) for entry in reversed(opened.live.calibrations())],
        may_calibrate=visitor.may(Permission.CALIBRATE, gallery), may_activate=visitor.may(Permission.ACTIVATE, gallery),
        preview=None if preview is None else _previewed(preview),
    )  # fmt: skip


def _rate(rate: Rate) -> str:
    if rate.share is None:
        return "not known"
    return f"{rate.share:.1%} ({rate.lower:.1%} to {rate.upper:.1%}; {rate.wrong} of {rate.answers})"


def _row(gallery: str, entry: CalibrationEntry) -> dict[str, Any]:
    return {
        "number": entry.number, "state": entry.state, "time": moment(entry.time), "source": SOURCES[entry.source],
        "version": entry.made_at, "address": address_of(gallery, "calibration", entry.number),
    }  # fmt: skip


def _previewed(found: CalibrationPreview) -> dict[str, Any]:
    def share(rates: Rates | None, name: str) -> str:
        value = None if rates is None else getattr(rates, name)
        return "–" if value is None else f"{value:.1%}"

    before = "–" if found.active_threshold is None else f"{found.active_threshold:.3f}"
    return {
        "number": found.number, "active": found.active,
        "rows": [
            ("Threshold", before, f"{found.threshold:.3f}"),
            *(
                (title, share(found.active_rates, name), share(found.rates, name))
                for title, name in (
                    ("Strangers accepted (FPIR)", "fpir"), ("Enrolled missed (FNIR)", "fnir"), ("Too uncertain", "filtered")
                )
            ),
        ],
        "differ": len(found.differ), "probes": found.probes,
        "changes": [f"{count} from {change}" for change, count in sorted(found.changes.items())],
        "doubts": [str(doubt) for doubt in found.doubts],
    }  # fmt: skip
