"""Kept settings: a recogniser's settings in the store, as they were given when the gallery was created."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from holue.errors import CorruptStoreError, InvalidParameterError
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.saved.recognizer_folder import plain_settings
from holue.recognition.settings import SETTINGS, Settings
from holue.store.protocol import Store

NAME = "settings"
DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(OpenSetRecognizer).parameters.items()
    if name in SETTINGS
}


CHANGEABLE = ("target_fpir", "fpir_confidence", "threshold", "hold", "filter_below")
"""Settings that can change while templates and calibrations stay as they are."""


def keep_settings(store: Store, given: Mapping[str, Any], *, by: str | None = None) -> None:
    """Store the settings of a gallery."""
    settings = _checked({**DEFAULTS, **given}, store.model)
    store.put_artifact(NAME, json.dumps(plain_settings(settings), allow_nan=False).encode(), by=by)


def keep_changed(store: Store, now: Settings, given: Mapping[str, Any], *, by: str | None = None) -> None:
    """Store other values of some settings that can change."""
    for name in given.keys() - set(CHANGEABLE):
        raise InvalidParameterError(f"{name!r} holds for the gallery's whole life; {', '.join(CHANGEABLE)} can change")
    keep_settings(store, {**plain_settings(now), **given}, by=by)


def check_settings(given: Mapping[str, Any], model: str | None) -> None:
    """Refuse a setting that a new gallery cannot have, before anything of it is made."""
    _checked({**DEFAULTS, **given}, model)


def has_settings(store: Store) -> bool:
    """Whether settings are kept."""
    return store.artifact(NAME) is not None


def settings_of(store: Store, given: Mapping[str, Any]) -> Settings:
    """The settings of a gallery; what is given now holds in place of what was kept."""
    data = store.artifact(NAME)
    try:
        kept = {} if data is None else json.loads(data)
        base = _checked({**DEFAULTS, **kept}, store.model)
    except (ValueError, TypeError) as error:
        raise CorruptStoreError(f"artifact {NAME!r} does not hold settings ({error})") from error
    return _checked({**plain_settings(base), **given}, store.model)


def _checked(values: Mapping[str, Any], model: str | None) -> Settings:
    for name in values:
        if name not in SETTINGS:
            raise InvalidParameterError(f"{name!r} is no setting of a gallery; the settings are {', '.join(SETTINGS)}")
    if values.get("embedding_model") not in (None, model):
        raise InvalidParameterError(
            f"embedding_model={values['embedding_model']!r} is not the gallery's model {model!r}; give it as model= at creation"
        )
    return Settings(**{**values, "embedding_model": model})
