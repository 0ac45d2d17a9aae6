"""Page: the screens and their style, put into the application."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from holue.service.page.rendering import HERE
from holue.service.page.screens import (
    audit,
    calibration,
    cluster,
    enrolment,
    entrance,
    identify,
    keys,
    log,
    pictures,
    review,
    subjects,
    try_screen,
)

SCREENS = (
    entrance,
    try_screen,
    identify,
    review,
    subjects,
    enrolment,
    audit,
    calibration,
    pictures,
    log,
    cluster,
    keys,
)


def install(app: FastAPI) -> None:
    """Add every screen."""
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    for each in SCREENS:
        app.include_router(each.router)
